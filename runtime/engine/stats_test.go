package engine

import (
	"reflect"
	"sync"
	"testing"

	"sandwich/runtime/phase"
	"sandwich/runtime/sched"
)

// TestMemoryWhileReserving checks that the memory can be read while a lost device's lane gets sets
// of activations.
func TestMemoryWhileReserving(t *testing.T) {
	e := byHand(t, tinyOptions(t))
	before := e.Stats().Memory.Activations
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := e.runner.ReserveMore(); err != nil {
			t.Error(err)
		}
	})
	e.Stats()
	wait.Wait()
	if now := e.Stats().Memory.Activations; now != 2*before {
		t.Errorf("%d bytes of activations, %d before", now, before)
	}
}

// TestStateOf checks the rows of the forward in flight of a lane.
func TestStateOf(t *testing.T) {
	lane := sched.Lane{Name: "cores", Cores: true, Phases: []phase.Phase{phase.Prefill, phase.Decode}}
	idle := LaneState{Name: "cores", Cores: true, Phases: lane.Phases}
	busy := func(p phase.Phase, rows int) LaneState {
		s := idle
		s.Busy, s.Phase, s.Rows = true, p, rows
		return s
	}
	for _, c := range []struct {
		act  *sched.Action
		want LaneState
	}{
		{nil, idle},
		{&sched.Action{Kind: sched.Prefill, N: 512}, busy(phase.Prefill, 512)},
		{&sched.Action{Kind: sched.Resume, N: 7}, busy(phase.Prefill, 7)},
		{&sched.Action{Kind: sched.Decode, Rows: []sched.Rows{{ID: 1, N: 1}, {ID: 2, N: 4}}}, busy(phase.Decode, 5)},
		{&sched.Action{Kind: sched.Prefill, N: 3, Rows: []sched.Rows{{ID: 1, N: 3}, {ID: 2, N: 9}}},
			busy(phase.Prefill, 12)},
	} {
		if got := stateOf(&lane, c.act); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: %+v, want %+v", c.act, got, c.want)
		}
	}
}
