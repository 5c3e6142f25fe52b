package sched

import (
	"slices"
	"testing"
)

// landing is the executor of a device for prefills, whose forwards land while Run computes decode
// batches or waits.
type landing struct {
	*rig
	inFlight [2]bool // by lane
	during   int     // prefills that began while Run computed a decode batch
	none     int     // times when Run returned without a forward
	decoding bool
}

func (r *landing) Begin(f *Action) {
	r.rig.Begin(f)
	if r.inFlight[f.Lane] = true; r.decoding && f.Lane == prefillLane {
		r.during++
	}
}

// Run lands the prefill in flight, if any, and then computes the decode batch, if any.
func (r *landing) Run(*Action) (LaneID, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	decoding := r.inFlight[decodeLane]
	r.decoding = decoding
	for r.inFlight[prefillLane] {
		r.inFlight[prefillLane] = false
		r.d.Land(prefillLane, true)
	}
	if r.decoding = false; !decoding {
		r.none++
		return NoLane, false
	}
	r.inFlight[decodeLane] = false
	return decodeLane, true
}

func (r *landing) End(f *Action, done bool, events []Event) []Event {
	r.rows = append(r.rows[:0], f.Rows...)
	return r.rig.End(f, done, events)
}

// TestLand checks that forwards that Land records start the next one of their lane while Run
// computes a forward of another lane, and that Run may return without a forward.
func TestLand(t *testing.T) {
	r := &landing{rig: newRig(Config{Lanes: twoLanes(), Blocks: 40, MaxRunning: 4, Queue: 8, Chunk: 64})}
	r.d = NewDriver(r.s, &r.mu, r, r)
	for id := ID(1); id <= 6; id++ {
		r.d.Post(r.arrival(id, Reactive, 100, 3))
	}
	r.d.Drive()
	for id, want := range r.want {
		if r.made[id] != want {
			t.Errorf("request %d got %d tokens, want %d", id, r.made[id], want)
		}
	}
	if !r.d.Idle() || r.during == 0 || r.none == 0 {
		t.Errorf("idle: %v; %d prefills began during a decode batch; Run returned %d times without a forward",
			r.d.Idle(), r.during, r.none)
	}
	if kinds := r.kinds(); slices.Contains(kinds, Reject) || slices.Contains(kinds, Preempt) {
		t.Errorf("carried out %v", kinds)
	}
}
