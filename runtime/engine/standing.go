package engine

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"sandwich/runtime/api"
	"sandwich/runtime/pool"
	"sandwich/topotree"
)

// standing is what the system leaves to the engine at one time.
type standing struct {
	places pool.Places
	quota  float64 // CPU time per time that cgroups grant; 0: all of it
}

func (s standing) equal(o standing) bool {
	return slices.Equal(s.places.Lost, o.places.Lost) && slices.Equal(s.places.Allowed, o.places.Allowed) &&
		s.quota == o.quota
}

// standingOf asks the system.
func standingOf(p *pool.Pool) (standing, error) {
	places, err := p.Places()
	return standing{places, topotree.ReadQuota(os.DirFS("/"))}, err
}

// team chooses the workers of a phase that are worth running: those on their own PUs, and of the
// others, which now share what is left, as many as there are PUs for them; no more than the quota
// pays for, and at least one of each rank that has any.
func (s standing) team(workers []int, ranks [][]int) []int {
	var left []int
	for _, w := range workers {
		if !slices.Contains(s.places.Lost, w) {
			left = append(left, w)
		}
	}
	room := max(1, len(s.places.Allowed))
	for _, w := range workers {
		if len(left) < room && slices.Contains(s.places.Lost, w) {
			left = append(left, w)
		}
	}
	if pays := topotree.QuotaPUs(s.quota); pays > 0 && len(left) > pays {
		left = left[:pays]
	}
	for _, members := range ranks {
		if first := firstOf(workers, members); first >= 0 && firstOf(left, members) < 0 {
			left = append(left, first)
		}
	}
	slices.Sort(left)
	return left
}

// firstOf returns the first worker of a list that is among members, -1 where there is none.
func firstOf(workers, members []int) int {
	for _, w := range workers {
		if slices.Contains(members, w) {
			return w
		}
	}
	return -1
}

// refusal says why new requests are refused: nil while at least one PU of the plan is left.
func (s standing) refusal(pus []int) error {
	if len(s.places.Lost) < len(pus) {
		return nil
	}
	const text = "the system took every PU of the plan (%v) away and leaves %v: " +
		"widen the cpuset, or serve again under a plan for what is left"
	return &api.UnavailableError{Reason: fmt.Sprintf(text, pus, s.places.Allowed)}
}

// note says in one sentence what changed since before.
func (s standing) note(before standing, pus []int) string {
	var parts []string
	if !slices.Equal(s.places.Lost, before.places.Lost) {
		parts = append(parts, placesNote(s.places, pus))
	}
	first := before.places.Allowed == nil // nothing changed yet: a quota that is enough needs no word
	if s.quota != before.quota && !(first && topotree.QuotaPUs(s.quota) >= len(pus)) {
		parts = append(parts, s.quotaNote(len(pus)))
	}
	return strings.Join(parts, "; ")
}

func (s standing) quotaNote(workers int) string {
	pays := topotree.QuotaPUs(s.quota)
	switch {
	case s.quota == 0:
		return "there is no CPU quota any more"
	case pays < workers:
		return fmt.Sprintf("the CPU quota is %.0f %% now, which pays for %d of the plan's %d PUs: raise it, or "+
			"make a plan for it with sandwich tune", 100*s.quota, pays, workers)
	}
	return fmt.Sprintf("the CPU quota is %.0f %% now, enough for the plan's %d PUs", 100*s.quota, workers)
}

func placesNote(p pool.Places, pus []int) string {
	if len(p.Lost) == 0 {
		return "every PU of the plan may be used again"
	}
	var lost []string
	if len(p.At) == len(pus) {
		pus = p.At // workers may have been moved
	}
	for _, w := range p.Lost {
		lost = append(lost, strconv.Itoa(pus[w]))
	}
	return fmt.Sprintf("the system took PU %s of the plan away, this process may use %v; widen the cpuset, or "+
		"make a plan for it with sandwich tune",
		strings.Join(lost, ", "), p.Allowed)
}
