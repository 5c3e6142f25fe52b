package selection

import (
	"slices"
	"sync"
	"testing"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/topotree"
	"sandwich/topotree/hwloc"
)

// locker is the reservations of a machine, which the monitors of several processes share.
type locker struct {
	mu   sync.Mutex
	held map[int]*process
}

// process is a process with a monitor that measured a load.
type process struct {
	*locker
	load map[int]float64
}

func (p *process) Load() map[int]float64 { return p.load }

func (p *process) Bound() map[int]bool { return nil }

func (p *process) Hold(pu int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if by := p.held[pu]; by != nil && by != p {
		return false
	}
	p.held[pu] = p
	return true
}

func (p *process) Release(pu int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.held, pu)
}

func (p *process) holds() []int {
	var out []int
	for pu, by := range p.held {
		if by == p {
			out = append(out, pu)
		}
	}
	slices.Sort(out)
	return out
}

func hostOf(t *testing.T, text string, quota float64) *profiles.Profile {
	t.Helper()
	m, err := hwloc.ReadSynthetic(text)
	if err != nil {
		t.Fatal(err)
	}
	m.QuotaCPUs = quota
	return profiles.New(m, profiles.Identity{})
}

// TestPlaceAfterOthers starts processes one after the other, of which each finds what the earlier
// ones hold, and demands that each holds the PUs it was placed on and no other.
func TestPlaceAfterOthers(t *testing.T) {
	for _, c := range []struct {
		name    string
		machine string
		quota   float64
		threads int
		ranks   int
		load    map[int]float64
		want    [][]int
	}{
		{"one thread each", "core:2", 0, 1, 0, nil, [][]int{{0}, {1}}},
		{"a quota of one each", "core:4", 1, 0, 0, nil, [][]int{{0}, {1}, {2}, {3}}},
		{"a busy PU is left out", "core:4", 0, 1, 0, map[int]float64{1: 0.9}, [][]int{{0}, {2}, {3}, {1}}},
		{"more processes than PUs", "core:2", 0, 1, 0, nil, [][]int{{0}, {1}, {0}}},
		{"two threads each", "l3:2 core:4", 0, 2, 0, nil, [][]int{{0, 1}, {2, 3}, {4, 5}, {6, 7}}},
		{"three threads each", "l3:2 core:4", 0, 3, 0, nil, [][]int{{0, 1, 2}, {4, 5, 6}}},
		{"two ranks each", "numa:2 core:4", 0, 2, 2, nil, [][]int{{0, 4}, {1, 5}, {2, 6}}},
	} {
		host := hostOf(t, c.machine, c.quota)
		l := &locker{held: map[int]*process{}}
		for i, want := range c.want {
			p := &process{l, c.load}
			o := Options{Threads: c.threads, TP: c.ranks, Occupancy: p}
			s, err := o.place(host)
			if err != nil {
				t.Fatal(err)
			}
			if !s.PrefillPUs.Equal(topotree.NewCPUSet(want...)) || !s.DecodePUs.Equal(topotree.NewCPUSet(want...)) {
				t.Errorf("%s: process %d is on %v, want %v", c.name, i, s.PrefillPUs, want)
			}
			if got := p.holds(); i < 2 && !slices.Equal(got, want) {
				t.Errorf("%s: process %d holds %v, want %v", c.name, i, got, want)
			}
		}
	}
}

// TestPlaceAtOnce starts processes at the same time, many times: no two are on one PU.
func TestPlaceAtOnce(t *testing.T) {
	host := hostOf(t, "l3:4 core:4", 0)
	for range 50 {
		l := &locker{held: map[int]*process{}}
		var placed [8][]int
		var all sync.WaitGroup
		for i := range placed {
			all.Go(func() {
				o := Options{Threads: 2, Occupancy: &process{l, nil}}
				if s, err := o.place(host); err == nil {
					placed[i] = s.PrefillPUs.Slice()
				}
			})
		}
		all.Wait()
		owner := map[int]int{}
		for i, pus := range placed {
			for _, pu := range pus {
				if other, taken := owner[pu]; taken {
					t.Fatalf("processes %d and %d are on PU %d: %v", i, other, pu, placed)
				}
				owner[pu] = i
			}
			if len(pus) != 2 {
				t.Fatalf("process %d is on %v", i, pus)
			}
		}
	}
}

// TestPlaceLeavesTheRest checks that nothing is measured or reserved if there is no choice.
func TestPlaceLeavesTheRest(t *testing.T) {
	host := hostOf(t, "core:4", 0)
	l := &locker{held: map[int]*process{}}
	p := &process{l, nil}
	for _, o := range []Options{{Threads: 4, Occupancy: p}, {Occupancy: p}, {Threads: 1}} {
		if s, err := o.place(host); err != nil || s != nil || len(l.held) > 0 {
			t.Errorf("%d threads: placed on %+v, %v; reservations %v", o.Threads, s, err, l.held)
		}
		if o.monitor(host) != nil {
			t.Errorf("%d threads: workers may be moved", o.Threads)
		}
	}
}

// TestReserveOfNamedPUs checks that a process that has a choice does not use the PUs of a plan that
// leaves none.
func TestReserveOfNamedPUs(t *testing.T) {
	host := hostOf(t, "core:4", 0)
	l := &locker{held: map[int]*process{}}
	first := &process{l, nil}
	plan := &plans.Plan{}
	plan.Prefill.PUs, plan.Decode.PUs = topotree.NewCPUSet(0, 1), topotree.NewCPUSet(0)
	(&Options{Occupancy: first}).reserve(plan)
	(&Options{}).reserve(plan)
	s, err := (&Options{Threads: 2, Occupancy: &process{l, nil}}).place(host)
	if err != nil || !s.PrefillPUs.Equal(topotree.NewCPUSet(2, 3)) || !slices.Equal(first.holds(), []int{0, 1}) {
		t.Errorf("placed on %+v, %v; the first holds %v", s, err, first.holds())
	}
}
