package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/api"
	"sandwich/runtime/engine/cpus"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool"
	"sandwich/topotree"
)

// wideOptions returns options of an engine of three workers on any PUs, with new schedules for
// fewer workers.
func wideOptions(t *testing.T) Options {
	t.Helper()
	o := tinyOptions(t)
	profile, err := profiles.Builtin("xeon6230")
	if err != nil {
		t.Fatal(err)
	}
	live, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	profile.Host = live.Host // its caches and kernels, this machine's instructions
	service := func(pus ...int) *plans.ServiceConfig {
		set := topotree.NewCPUSet(pus...)
		return &plans.ServiceConfig{Ranks: []plans.Rank{{PUs: set, NUMANode: -1}}, PrefillPUs: set, DecodePUs: set}
	}
	shape := o.Plan.Model
	plan, err := heuristic.Default(profile, shape, heuristic.Options{Service: service(0, 1, 2)})
	if err != nil {
		t.Fatal(err)
	}
	plan.Chunk = 32
	o.Plan, o.Unpinned = plan, true
	o.Replan = func(s *plans.ServiceConfig) (*plans.Plan, error) {
		return heuristic.Default(profile, shape, heuristic.Options{Service: s})
	}
	return o
}

// TestReplan takes PUs and quota away from a serving engine and gives them back: the tokens stay
// the same, the teams shrink and grow, and each change is said once.
func TestReplan(t *testing.T) {
	o := wideOptions(t)
	var notes []string
	o.Note = func(text string) { notes = append(notes, text) }
	e := byHand(t, o)
	now := cpus.State{Places: pool.Places{Allowed: []int{0, 1, 2}}}
	e.watch.read = func() (cpus.State, error) { return now, nil }
	answer := func() (ids []int32) {
		e.runner.Lead(func(l *pool.Leader) {
			j := e.enter(t, api.Request{Prompt: tinyPrompt(1, 40), MaxTokens: 8, IgnoreEOS: true})
			for e.forward(l) != nil {
			}
			ids, _ = j.drained()
		})
		return ids
	}
	e.watch.look()
	want := answer()
	for _, c := range []struct {
		name    string
		lost    []int
		allowed []int
		quota   float64
		active  []int
		note    string
	}{
		{"a PU less", []int{1}, []int{0, 2}, 0, []int{0, 2}, "PU 1 of the plan became unavailable"},
		{"two PUs less", []int{0, 2}, []int{1}, 0, []int{1}, "planned again"},
		{"a quota below that", []int{1}, []int{0, 2}, 0.8, []int{0}, "quota is now 80 %"},
		{"a quota of 150 %", nil, []int{0, 1, 2}, 1.5, []int{0, 1}, "quota is now 150 %, which suffices for 2 of"},
		{"all back", nil, []int{0, 1, 2}, 0, []int{0, 1, 2}, "CPU quota was removed"},
	} {
		now = cpus.State{Places: pool.Places{Allowed: c.allowed, Lost: c.lost}, Quota: c.quota}
		notes = nil
		e.watch.look()
		e.watch.look()
		if len(notes) != 1 || !strings.Contains(notes[0], c.note) {
			t.Errorf("%s: notes %q, want one with %q", c.name, notes, c.note)
		}
		if got := answer(); !slices.Equal(got, want) {
			t.Errorf("%s: tokens %v, want %v", c.name, got, want)
		}
		if got := e.Stats().Pool.Active; !slices.Equal(got, c.active) {
			t.Errorf("%s: workers %v are active, want %v", c.name, got, c.active)
		}
		own := e.runner.OnPlan(phase.Prefill)
		if full := len(c.active) == 3; own != full {
			t.Errorf("%s: the plan's own schedules run: %v", c.name, own)
		}
	}
	if n := e.runner.Replans(); n != 4 {
		t.Errorf("schedules were made %d times, want 4", n)
	}
}

// TestMovedWorkersAreShown checks that the statistics have the PUs of workers that were moved,
// which changes nothing else.
func TestMovedWorkersAreShown(t *testing.T) {
	o := wideOptions(t)
	o.Note = func(text string) { t.Errorf("note %q", text) }
	e := byHand(t, o)
	for _, pu := range []int{0, 3, 4} {
		at := []int{pu, 1, 2}
		e.watch.read = func() (cpus.State, error) {
			return cpus.State{Places: pool.Places{Allowed: []int{0, 1, 2, 3, 4}, At: at}}, nil
		}
		e.watch.look()
		if got := e.Stats().Places.At; !slices.Equal(got, at) {
			t.Errorf("workers are shown on %v, want %v", got, at)
		}
	}
}

// TestNoPlaceLeft takes every PU of the plan away: new requests are refused with the reason until
// one is back.
func TestNoPlaceLeft(t *testing.T) {
	o := wideOptions(t)
	var displaced []error
	o.Displaced = func(err error) { displaced = append(displaced, err) }
	e := byHand(t, o)
	now := cpus.State{Places: pool.Places{Allowed: []int{7}, Lost: []int{0, 1, 2}}}
	e.watch.read = func() (cpus.State, error) { return now, nil }
	e.watch.look()
	var gone *api.UnavailableError
	err := e.submit(&job{req: &api.Request{Prompt: tinyPrompt(1, 4)}})
	if !errors.As(err, &gone) || !strings.Contains(err.Error(), "[0 1 2]") {
		t.Errorf("without a PU: %v", err)
	}
	if err := e.Ready(); err == nil || len(displaced) != 1 {
		t.Errorf("ready: %v; told %d times", err, len(displaced))
	}
	now = cpus.State{Places: pool.Places{Allowed: []int{1, 7}, Lost: []int{0, 2}}}
	e.watch.look()
	if err := e.Ready(); err != nil {
		t.Errorf("with a PU back: %v", err)
	}
	e.runner.Lead(func(l *pool.Leader) {
		j := e.enter(t, api.Request{Prompt: tinyPrompt(1, 4), MaxTokens: 2, IgnoreEOS: true})
		for e.forward(l) != nil {
		}
		if ids, _ := j.drained(); len(ids) != 2 {
			t.Errorf("%d tokens, want 2", len(ids))
		}
	})
}

// TestTeamKeepsRanks checks that each rank keeps a worker, whatever PUs are removed.
func TestTeamKeepsRanks(t *testing.T) {
	ranks := [][]int{{0, 1}, {2, 3}}
	for _, c := range []struct {
		lost, allowed []int
		quota         float64
		want          []int
	}{
		{[]int{2, 3}, []int{0, 1}, 0, []int{0, 1, 2}},
		{[]int{3}, []int{0, 1, 2}, 0, []int{0, 1, 2}},
		{nil, []int{0, 1, 2, 3}, 1, []int{0, 2}},
		{nil, []int{0, 1, 2, 3}, 4, []int{0, 1, 2, 3}},
	} {
		s := cpus.State{Places: pool.Places{Lost: c.lost, Allowed: c.allowed}, Quota: c.quota}
		if got := s.Team([]int{0, 1, 2, 3}, ranks); !slices.Equal(got, c.want) {
			t.Errorf("lost %v, quota %g: %v, want %v", c.lost, c.quota, got, c.want)
		}
	}
}
