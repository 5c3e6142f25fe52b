package sched

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// policy is what a service may decide for itself: who runs next, who gives way, who
// waits. A policy is one file, which enters it into policies. It only looks at the
// scheduler; blocks, queues, aging and what has halted are the scheduler's, so that
// what the package promises holds under every policy that keeps these terms.
type policy interface {
	// rules are what the policy leaves to the scheduler.
	rules() rules
	// next chooses the next forward: one of the prefills of w and its quantum, 0 for
	// none, or nil for a decode batch where any sequence is ready to decode, on the credit of
	// quanta where that is not 0. There is at least one of them.
	next(s *Scheduler, w work) (prefill *request, quantum time.Duration)
	// batch orders the sequences that are ready to decode, none of them twice, by
	// precedence for a row and for blocks, and leaves out who has to pause. At least
	// one stays, and no more than MaxRunning and one. Drafts may fill the batch up to
	// so many rows.
	batch(s *Scheduler, ready []*request) (rows []*request, most int)
	// victim is the resident sequence that loses its blocks next where blocks are
	// short, nil where all are in flight: the last by one lasting order, so that the
	// first of that order always gets to its end.
	victim(s *Scheduler) *request
	// halts says whether the arrival of r halts the proactive prefill in flight.
	halts(s *Scheduler, r *request) bool
}

// rules of a policy; the zero value is that of most.
type rules struct {
	blind  bool // to the class: every request is reactive
	ranks  bool // requests of one class go by priority, then by arrival
	expels bool // proactive sequences lose what they have while reactive requests live
	lifts  bool // an aged request is reactive from then on
	owes   bool // a first quantum, and progress from there on: guarantee.go
}

// DefaultPolicy is the policy of a Config that names none.
const DefaultPolicy = "sandwich"

// policies by name; each file of a policy enters its own.
var policies = map[string]policy{}

// Policies lists the names that Config.Policy knows.
func Policies() []string { return slices.Sorted(maps.Keys(policies)) }

func policyNamed(name string) (policy, error) {
	if name == "" {
		name = DefaultPolicy
	}
	if p := policies[name]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("unknown scheduling policy %.40q; choose one of %s", name, strings.Join(Policies(), ", "))
}
