package sched

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// policy decides which forward runs next, which requests it contains, which sequence loses its
// blocks and when a prefill halts. A policy is one file, which registers a constructor in policies;
// each Scheduler has its own instance, which may keep state. It reads the scheduler and does not
// change it. Blocks, queues, aging and halted forwards belong to the scheduler, so that the
// invariants of the package hold under every policy.
type policy interface {
	// rules are the parts of the policy that the scheduler applies.
	rules() rules
	// next chooses the next forward: a prefill of w with its quantum (0: unlimited), or nil for a
	// decode batch, which quantum pays for unless it is 0. w is not empty.
	next(s *Scheduler, w work) (prefill *request, quantum time.Duration)
	// batch orders the sequences that are ready to decode by precedence for rows and blocks and
	// leaves out those that pause. At least one stays, and at most MaxRunning+1. Drafts may fill
	// the batch up to limit rows, which is at most Config.BatchRows.
	batch(s *Scheduler, ready []*request) (rows []*request, limit int)
	// victim is the resident sequence that loses its blocks next, or nil if all of them write to
	// their blocks. It is the last one of a fixed order, so that the first one always finishes.
	victim(s *Scheduler) *request
	// halts reports whether the arrival of r halts the proactive prefill in flight.
	halts(s *Scheduler, r *request) bool
	// due reports whether the first forward of r must be the next of its class. A request that is
	// due is admitted beyond MaxRunning.
	due(s *Scheduler, r *request) bool
	// chunk bounds the rows of the next prefill chunk of r.
	chunk(s *Scheduler, r *request) int
	// started, landed and aged are called when a forward starts, when it ended (done) or halted,
	// and when a proactive request ages.
	started(s *Scheduler, f *flight)
	landed(s *Scheduler, f *flight, done bool)
	aged(s *Scheduler, r *request)
}

// rules of a policy. The zero value gives no request more than its class and arrival do.
type rules struct {
	ignoresClass bool // every request is reactive
	priorities   bool // requests of one class are ordered by priority, then by arrival
	expels       bool // proactive sequences lose their blocks while reactive requests live
	promotes     bool // an aged request becomes reactive
}

// base implements the methods that a policy may leave out.
type base struct{}

func (base) rules() rules                                           { return rules{} }
func (base) victim(s *Scheduler) *request                           { return last(s) }
func (base) halts(*Scheduler, *request) bool                        { return false }
func (base) due(*Scheduler, *request) bool                          { return false }
func (base) chunk(*Scheduler, *request) int                         { return math.MaxInt }
func (base) started(*Scheduler, *flight)                            {}
func (base) landed(*Scheduler, *flight, bool)                       {}
func (base) aged(*Scheduler, *request)                              {}
func (base) batch(s *Scheduler, ready []*request) ([]*request, int) { return inOrder(s, ready) }

// policies has a constructor for each name; the file of a policy adds its own.
var policies = map[string]func() policy{}

// Policies returns the names that Config.Policy may have, sorted.
func Policies() []string { return slices.Sorted(maps.Keys(policies)) }

func newPolicy(name string) (policy, error) {
	if name == "" {
		name = DefaultPolicy
	}
	if p := policies[name]; p != nil {
		return p(), nil
	}
	return nil, fmt.Errorf("unknown scheduling policy %.40q; choose one of %s", name, strings.Join(Policies(), ", "))
}

// work is what could run now, by request class.
type work struct {
	prefill [2]*request // the next prefill
	decode  [2]int      // sequences that are ready to decode
}

func (w work) none() bool { return w == work{} }

// within returns the next forward of one class: a prefill, or nil for a decode batch. Prefill
// chunks and decode batches alternate.
func (s *Scheduler) within(w work, c Class) *request {
	if w.decode[c] > 0 && s.sinceChunk < s.cfg.DecodesBetweenChunks {
		return nil
	}
	return w.prefill[c]
}

// inOrder returns a batch of all ready sequences in order of precedence, up to MaxRunning.
func inOrder(s *Scheduler, ready []*request) ([]*request, int) {
	slices.SortFunc(ready, precedence)
	return ready[:min(len(ready), s.cfg.MaxRunning)], s.cfg.BatchRows
}

// ofClass keeps the requests of a class, or all if there are none of it.
func ofClass(ready []*request, c Class) []*request {
	n := 0
	for i, r := range ready {
		if r.class == c {
			ready[n], ready[i] = r, ready[n]
			n++
		}
	}
	if n == 0 {
		n = len(ready)
	}
	return ready[:n]
}

// last returns the resident sequence with the lowest precedence that does not write to its blocks.
func last(s *Scheduler) *request {
	var v *request
	for _, r := range s.running {
		if !r.writes() && (v == nil || v.before(r)) {
			v = r
		}
	}
	return v
}
