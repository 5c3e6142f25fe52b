// Package cpus follows the CPUs that the system leaves to a worker pool: it reads the available
// PUs and the CPU quota, chooses the workers that should run, and moves workers away from PUs that
// other processes use.
package cpus

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"sandwich/runtime/api"
	"sandwich/runtime/pool"
	"sandwich/topotree"
	"sandwich/topotree/sysfs"
)

// State describes the CPUs that the system leaves to the engine at one time.
type State struct {
	Places pool.Places
	Quota  float64 // CPU quota of the cgroup, in CPUs; 0: unlimited
}

// Equal reports whether two states have the same available PUs and quota.
func (s State) Equal(o State) bool {
	return slices.Equal(s.Places.Lost, o.Places.Lost) && slices.Equal(s.Places.Allowed, o.Places.Allowed) &&
		s.Quota == o.Quota
}

// Read asks the system for the available CPUs.
func Read(p *pool.Pool) (State, error) {
	places, err := p.Places()
	return State{places, sysfs.ReadQuota(os.DirFS("/"))}, err
}

// Team returns the workers of a phase that should run: those whose PUs are available, and of the
// others as many as there are further available PUs; in all at most as many as the quota pays for,
// and at least one of each rank.
func (s State) Team(workers []int, ranks [][]int) []int {
	var left []int
	for _, w := range workers {
		if !slices.Contains(s.Places.Lost, w) {
			left = append(left, w)
		}
	}
	room := max(1, len(s.Places.Allowed))
	for _, w := range workers {
		if len(left) < room && slices.Contains(s.Places.Lost, w) {
			left = append(left, w)
		}
	}
	if pays := topotree.QuotaPUs(s.Quota); pays > 0 && len(left) > pays {
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

// firstOf returns the first worker of a list that is a member, -1 if there is none.
func firstOf(workers, members []int) int {
	for _, w := range workers {
		if slices.Contains(members, w) {
			return w
		}
	}
	return -1
}

// Refusal returns the error for new requests if no PU of the plan is available, else nil.
func (s State) Refusal(pus []int) error {
	if len(s.Places.Lost) < len(pus) {
		return nil
	}
	const text = "no PU of the plan (%v) is available; this process may use %v: " +
		"extend the cpuset, or restart with a plan for the available PUs"
	return &api.UnavailableError{Reason: fmt.Sprintf(text, pus, s.Places.Allowed)}
}

// Note returns a sentence about what changed, empty if nothing did.
func (s State) Note(before State, pus []int) string {
	var parts []string
	if !slices.Equal(s.Places.Lost, before.Places.Lost) {
		parts = append(parts, placesNote(s.Places, pus))
	}
	first := before.Places.Allowed == nil // at the start a sufficient quota is not reported
	if s.Quota != before.Quota && !(first && topotree.QuotaPUs(s.Quota) >= len(pus)) {
		parts = append(parts, s.quotaNote(len(pus)))
	}
	return strings.Join(parts, "; ")
}

// quotaNote describes the quota for the number of workers of the plan.
func (s State) quotaNote(workers int) string {
	pays := topotree.QuotaPUs(s.Quota)
	switch {
	case s.Quota == 0:
		return "the CPU quota was removed"
	case pays < workers:
		return fmt.Sprintf("the CPU quota is now %.0f %%, which suffices for %d of the plan's %d PUs: raise it, or "+
			"make a plan for it with sandwich tune", 100*s.Quota, pays, workers)
	}
	return fmt.Sprintf("the CPU quota is now %.0f %%, enough for the plan's %d PUs", 100*s.Quota, workers)
}

// placesNote describes which PUs of the plan are unavailable.
func placesNote(p pool.Places, pus []int) string {
	if len(p.Lost) == 0 {
		return "all PUs of the plan are available again"
	}
	var lost []string
	if len(p.At) == len(pus) {
		pus = p.At // workers may have been moved
	}
	for _, w := range p.Lost {
		lost = append(lost, strconv.Itoa(pus[w]))
	}
	return fmt.Sprintf("PU %s of the plan became unavailable, this process may use %v; extend the cpuset, or "+
		"make a plan for it with sandwich tune",
		strings.Join(lost, ", "), p.Allowed)
}
