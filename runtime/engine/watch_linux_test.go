package engine

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandwich/runtime/api"
	"sandwich/runtime/engine/cpus"
	"sandwich/runtime/pool"
)

// TestShrinkingCpuset removes a PU from a serving engine as the kernel does when a cpuset shrinks:
// requests continue with the same tokens on the remaining PUs, one message reports it, and the PU
// is used again when it returns.
func TestShrinkingCpuset(t *testing.T) {
	var notes []string
	o := tinyOptions(t)
	o.Note = func(text string) { notes = append(notes, text) }
	if o.Plan.Decode.PUs.Count() < 2 {
		t.Skip("needs two PUs; allow this process another one")
	}
	e := byHand(t, o)
	pus := e.runner.Pool().PUs()
	lost := pus[len(pus)-1]
	answer := func(active int) (ids []int32) {
		e.runner.Lead(func(l *pool.Leader) {
			j := e.enter(t, api.Request{Prompt: tinyPrompt(1, 40), MaxTokens: 8, IgnoreEOS: true})
			for e.forward(l) != nil {
				if got := e.Stats().Pool.Active; len(got) != active {
					t.Errorf("workers %v are active, want %d", got, active)
				}
			}
			ids, _ = j.drained()
		})
		return ids
	}
	e.watch.look()
	want := answer(len(pus))

	shrink(t, lost)
	e.watch.look()
	e.watch.look()
	if got := e.Stats().Places.Lost; !slices.Equal(got, []int{len(pus) - 1}) {
		t.Errorf("lost are workers %v, want the last one", got)
	}
	if got := answer(len(pus) - 1); !slices.Equal(got, want) {
		t.Errorf("with a PU less: %v, want %v", got, want)
	}
	widen(t)
	e.watch.look()
	if got := answer(len(pus)); !slices.Equal(got, want) {
		t.Errorf("with the PU back: %v, want %v", got, want)
	}
	if len(notes) != 2 || !strings.Contains(notes[0], "PU "+strconv.Itoa(lost)) {
		t.Errorf("notes: %q", notes)
	}
}

var wholeSet unix.CPUSet

// shrink takes a PU from every thread of the process; a thread that has no other gets what the
// process has left.
func shrink(t *testing.T, pu int) {
	t.Helper()
	if err := unix.SchedGetaffinity(unix.Getpid(), &wholeSet); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { widen(t) })
	rest := wholeSet
	rest.Clear(pu)
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range threads {
		thread, err := strconv.Atoi(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		var mask unix.CPUSet
		if unix.SchedGetaffinity(thread, &mask) != nil || !mask.IsSet(pu) {
			continue // it ended, or it is bound elsewhere
		}
		mask.Clear(pu)
		if mask.Count() == 0 {
			mask = rest
		}
		if err := unix.SchedSetaffinity(thread, &mask); err != nil {
			t.Logf("thread %d: %v", thread, err)
		}
	}
}

// widen gives the PU back to every thread that is not bound to one.
func widen(t *testing.T) {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range threads {
		thread, err := strconv.Atoi(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.SchedSetaffinity(thread, &wholeSet); err != nil {
			t.Logf("thread %d: %v", thread, err)
		}
	}
}

func TestTeamLeft(t *testing.T) {
	for _, c := range []struct{ workers, lost, allowed, want []int }{
		{[]int{0, 1}, nil, []int{0, 1}, []int{0, 1}},
		{[]int{0, 1}, []int{1}, []int{0}, []int{0}},
		{[]int{0, 1, 2, 3}, []int{0, 3}, []int{1, 2}, []int{1, 2}},
		{[]int{0, 1}, []int{0, 1}, []int{2, 3}, []int{0, 1}},
		{[]int{0, 1, 2}, []int{0, 1, 2}, []int{5}, []int{0}},
		{[]int{0, 1, 2}, []int{0, 1}, []int{2, 7}, []int{0, 2}},
		{[]int{0}, []int{0}, nil, []int{0}},
	} {
		s := cpus.State{Places: pool.Places{Lost: c.lost, Allowed: c.allowed}}
		if got := s.Team(c.workers, nil); !slices.Equal(got, c.want) {
			t.Errorf("of %v, lost %v, allowed %v: %v, want %v", c.workers, c.lost, c.allowed, got, c.want)
		}
	}
}
