package sched

import (
	"fmt"
	"slices"
	"testing"
)

// steps runs one Step and returns its actions as text, one for each request.
func steps(s *Scheduler, events ...Event) (out []string) {
	for _, a := range s.Step(0, events) {
		name := map[ActionKind]string{Prefill: "prefill", Decode: "decode", Halt: "halt", Reject: "reject",
			Placed: "placed", Load: "load"}[a.Kind]
		out = append(out, fmt.Sprintf("%s %d", name, a.ID))
	}
	return out
}

func pending(id ID, class Class) Event {
	return Event{Kind: Arrive, ID: id, Class: class, PromptTokens: 10, MaxTokens: 5, Pending: true}
}

func arriving(id ID, class Class) Event {
	return Event{Kind: Arrive, ID: id, Class: class, PromptTokens: 10, MaxTokens: 5}
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestPendingRequests checks that a request that is not ready has a place of its queue, does not
// run before it is ready, and then runs in the order of arrival.
func TestPendingRequests(t *testing.T) {
	for _, policy := range Policies() {
		s := mustNew(Config{Blocks: 40, MaxRunning: 1, Queue: 2, Policy: policy})
		expect(t, policy+" arrives", steps(s, pending(1, Reactive)), "placed 1")
		expect(t, policy+" waits", steps(s))
		expect(t, policy+" does not hold others up", steps(s, arriving(2, Reactive)), "prefill 2")
		expect(t, policy+" has a place", steps(s, arriving(3, Reactive), pending(4, Reactive)), "reject 4")
		if w := s.Stats().Waiting[Reactive]; w != 2 {
			t.Errorf("%s: %d requests wait, want 2", policy, w)
		}
		expect(t, policy+" is ready", steps(s, Event{Kind: Ready, ID: 1}))
		expect(t, policy+" goes before a later one", steps(s, Event{Kind: Done}, Event{Kind: Finish, ID: 2}),
			"prefill 1")
		expect(t, policy+" ends", steps(s, Event{Kind: Done}, Event{Kind: Finish, ID: 1}), "prefill 3")
		expect(t, policy+" is ready once", steps(s, Event{Kind: Ready, ID: 1}, Event{Kind: Ready, ID: 3}))
	}
}

// TestPendingRequestsTakePlaces checks that rows that are free count as places for requests that
// are not ready, and that one that is withdrawn gives its place back.
func TestPendingRequestsTakePlaces(t *testing.T) {
	for _, class := range []Class{Reactive, Proactive} {
		s := mustNew(Config{Blocks: 40, MaxRunning: 2})
		expect(t, "two rows", steps(s, pending(1, class), pending(2, class), pending(3, class)), "reject 3", "placed 1",
			"placed 2")
		expect(t, "none is left", steps(s, pending(4, class)), "reject 4")
		expect(t, "one is given back", steps(s, Event{Kind: Cancel, ID: 1}, pending(5, class)), "placed 5")
		expect(t, "one runs", steps(s, Event{Kind: Ready, ID: 2}), "prefill 2")
		expect(t, "both are taken", steps(s, arriving(6, class)))
		expect(t, "a ready one is not refused", steps(s, Event{Kind: Ready, ID: 5}))
		steps(s, Event{Kind: Cancel, ID: 5}, Event{Kind: Cancel, ID: 6}, Event{Kind: Done}, Event{Kind: Finish, ID: 2})
		if s.Live() != 0 || s.Stats().Waiting != [2]int{} || s.unready != [2]int{} {
			t.Errorf("%d live, %v wait", s.Live(), s.Stats().Waiting)
		}
	}
}

// TestPendingRequestsDoNotHalt checks that a prefill is halted for a reactive request when it is
// ready and not before.
func TestPendingRequestsDoNotHalt(t *testing.T) {
	s := mustNew(Config{Blocks: 40, MaxRunning: 2, Queue: 4})
	expect(t, "a proactive one", steps(s, arriving(1, Proactive)), "prefill 1")
	expect(t, "a reactive one that is not ready", steps(s, pending(2, Reactive)), "placed 2")
	expect(t, "is ready", steps(s, Event{Kind: Ready, ID: 2}), "halt 1")
}
