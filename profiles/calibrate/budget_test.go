package calibrate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
	"sandwich/topotree"
)

func TestMemoryBudget(t *testing.T) {
	for free, want := range map[int64]int{-1: 256 << 20, 0: 0, 100 << 20: 25 << 20, 1 << 30: 256 << 20,
		1<<30 - 4: 256<<20 - 1, 1 << 40: 256 << 20} {
		if got := memoryBudget(free); got != want {
			t.Errorf("of %d available bytes: %d, want %d", free, got, want)
		}
	}
}

// TestStretch checks which bytes passes read: those that are flushed start at the beginning and
// read each byte once, others continue and go round.
func TestStretch(t *testing.T) {
	const kib = 1 << 10
	for name, c := range map[string]struct {
		memory, max int
		flush       bool
		want        [3]string // offsets of calls in units of the call, by pass
		call        int
	}{
		"round":             {8 << 20, 6 << 20, false, [3]string{"012345", "670123", "456701"}, 1 << 20},
		"several times":     {2 << 20, 3 << 20, false, [3]string{"012301", "230123", "012301"}, 512 * kib},
		"flushed":           {8 << 20, 6 << 20, true, [3]string{"012345", "012345", "012345"}, 1 << 20},
		"flushed, small":    {1300 * kib, 96 << 20, true, [3]string{"0123", "0123", "0123"}, 325 * kib},
		"flushed, odd":      {5*kib + 7, 96 << 20, true, [3]string{"01234", "01234", "01234"}, kib},
		"less than a block": {2 * kib, 1, false, [3]string{"0", "1", "0"}, kib},
	} {
		s := newStretch(make([]byte, c.memory), c.max, c.flush)
		at := 0
		for i, want := range c.want {
			s.prepare(&at)
			got, bytes := "", 0
			done := s.pass(&at, func(b []byte) {
				got += string(rune('0' + (cap(s.region)-cap(b))/s.call))
				bytes += len(b)
			})
			if got != want || s.call != c.call || int(done) != bytes {
				t.Errorf("%s: pass %d reads %s in calls of %d, %g of %d bytes; want %s in calls of %d", name, i, got,
					s.call, done, bytes, want, c.call)
			}
		}
	}
}

// TestPasses checks that a sample is the work of all passes by their time, without that of warm.
func TestPasses(t *testing.T) {
	workers, err := pool.New(narrow(t).FirstPUs(1).Slice(), pool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer workers.Close()
	b := newBench(workers, narrow(t))
	var order []byte
	f := &figure{workers: []int{0}, passes: 3,
		warm: func(int) { order = append(order, 'w'); time.Sleep(time.Millisecond) },
		work: func(int) float64 { order = append(order, '.'); return 1 }}
	rate, err := b.run(f)
	if err != nil || string(order) != "w.w.w." || !(rate > 0) {
		t.Errorf("%g after %s, %v", rate, order, err)
	}
	if b.wall <= 0 {
		t.Error("no time was counted")
	}
}

// TestLargeCaches checks the figures of machines whose caches are larger than the budget: memory is
// flushed or, where it cannot be, the profile says that the figure is an upper bound.
func TestLargeCaches(t *testing.T) {
	const l3 = 512 << 20
	host := withCaches(t, func(kind topotree.Kind, bytes int64) int64 {
		if kind == topotree.KindL3 {
			return l3
		}
		return min(bytes, 16<<20)
	})
	for _, flushes := range []bool{true, false} {
		b := benchOf(t, host)
		b.flushes = flushes
		before := mem.Total()
		figures, err := b.figures()
		if err != nil {
			t.Fatal(err)
		}
		if got := mem.Total() - before; got > maxMemory {
			t.Errorf("buffers of %d bytes", got)
		}
		for _, f := range figures {
			if f.ceiling.Level == "memory" && (f.warm != nil) != flushes {
				t.Errorf("%d PUs read memory with a flush: %v, want %v", f.ceiling.PUs, f.warm != nil, flushes)
			}
		}
		panels := slices.ContainsFunc(figures, func(f *figure) bool { return f.ceiling.Level == profiles.Weights })
		if native := nativePanels(t); panels != (flushes && native) {
			t.Errorf("panels are measured: %v; caches are flushed: %v, native code: %v", panels, flushes, native)
		}
		if noted := strings.Contains(strings.Join(b.notes, "\n"), "upper bound"); noted == flushes {
			t.Errorf("caches are flushed: %v, notes %q", flushes, b.notes)
		}
	}
}

// TestRatesOfLargeCaches checks that the rates for untuned plans keep the budget, too.
func TestRatesOfLargeCaches(t *testing.T) {
	for _, l3 := range []int64{4 << 20, 64 << 20, 512 << 20} {
		b := benchOf(t, withCaches(t, func(kind topotree.Kind, bytes int64) int64 {
			if kind == topotree.KindL3 {
				return l3
			}
			return min(bytes, 1<<20)
		}))
		before := mem.Total()
		if _, err := b.firstReads(microkernel.Host().Best()); err != nil {
			t.Fatal(err)
		}
		if got := mem.Total() - before; got > maxMemory {
			t.Errorf("L3 of %d bytes: buffers of %d bytes", l3, got)
		}
	}
}

// TestSmallBudget checks that a measurement does with little memory.
func TestSmallBudget(t *testing.T) {
	for _, left := range []int{0, 1 << 20, 20 << 20} {
		b := benchOf(t, narrow(t))
		b.left = left
		figures, err := b.bandwidthFigures()
		if err != nil {
			t.Fatal(err)
		}
		if got, limit := b.buffer.Len(), max(left, b.pool.Size()*minShare); got > limit {
			t.Errorf("a buffer of %d bytes, want at most %d", got, limit)
		}
		for _, f := range figures {
			if rate, err := b.run(f); err != nil || !(rate > 1) {
				t.Errorf("%d bytes: %s has %g, %v", left, f.ceiling.Name(), rate, err)
			}
			if f.ceiling.Level == profiles.Weights {
				t.Errorf("panels are read from %d bytes", left)
			}
		}
	}
}

// benchOf returns a bench on the first PUs of a machine.
func benchOf(t *testing.T, host *profiles.Profile) *bench {
	t.Helper()
	workers, err := pool.New(host.RankedPUs(), pool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(workers, host)
	t.Cleanup(func() { b.free(); workers.Close() })
	return b
}

// nativePanels reports whether this machine reads panels by generated code.
func nativePanels(t *testing.T) bool {
	t.Helper()
	isa := microkernel.Host().Best()
	if !isa.Generates() {
		return false
	}
	r, err := microkernel.NewPanelReader(isa, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r.Native()
}
