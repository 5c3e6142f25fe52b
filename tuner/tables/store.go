package tables

import (
	"fmt"
	"math/bits"

	"sandwich/plans"
	"sandwich/tuner/search"
	"sandwich/tuner/trials"
)

// Store holds the results of kernel searches of earlier runs. Without a usable file it is empty,
// because the search merely takes longer without it.
type Store struct {
	wisdom *trials.Wisdom
	warn   func(error)
}

// OpenStore reads the results of earlier runs at path; "" is an empty store. warn receives the
// errors; it may be nil.
func OpenStore(path string, warn func(error)) *Store {
	s := &Store{warn: warn}
	if path == "" {
		return s
	}
	var err error
	if s.wisdom, err = trials.OpenWisdom(path); err != nil {
		s.failed(err)
	}
	return s
}

func (s *Store) failed(err error) {
	if s.warn != nil {
		s.warn(err)
	}
}

// Close closes the file.
func (s *Store) Close() error { return s.wisdom.Close() }

// lookup returns the stored trials of a problem, see trials.Wisdom.
func (s *Store) lookup(problem string, p search.Problem, effort search.Effort, share float64) ([]search.Anchor,
	map[int]plans.Schedule) {
	return s.wisdom.Lookup(problem, p, effort, share)
}

// keep stores the result of a search for later runs. After a failure it stores nothing more.
func (s *Store) keep(problem string, r *search.Result, known []search.Anchor, effort search.Effort, share float64) {
	if err := s.wisdom.Keep(problem, r, known, effort, share); err != nil {
		s.failed(err)
		_ = s.wisdom.Close()
		s.wisdom = nil
	}
}

// problemName returns everything but the effort that determines what a search times. Models with
// equal problems share the results.
func (b *Problems) problemName(j *Job, p *search.Problem, strategy string) string {
	cold := "from memory"
	if n := b.Partition.ModelBytes(); n <= b.Partition.LastLevel() { // it stays in the last-level cache
		cold = fmt.Sprintf("2^%d bytes", bits.Len64(uint64(n)))
	}
	ranks := 1
	if j.Shape.PerRank {
		ranks = len(b.Partition.Plan.Ranks)
	}
	return fmt.Sprintf("%s %s %s on PUs %s, %d threads x %d, %s, %s, %s", p.Phase, p.Key, p.Compute, j.PUs, p.Threads,
		ranks, b.Partition.Plan.ISAOf(j.class), cold, strategy)
}
