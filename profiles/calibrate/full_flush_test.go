package calibrate

import (
	"strings"
	"testing"
	"time"

	"sandwich/profiles"
	"sandwich/runtime/mem"
	"sandwich/topotree"
)

// TestFullOfLargeCaches runs the stages that read memory on a machine whose caches hold a region:
// it is flushed before each pass, and a pass ends with it.
func TestFullOfLargeCaches(t *testing.T) {
	f := workersFor(t, described(t, "numa:2(memory=1GiB) l3:1(size=512MiB) core:2"))
	if f.memory.flush != mem.CanFlush() {
		t.Fatalf("caches are flushed: %v; they can be: %v", f.memory.flush, mem.CanFlush())
	}
	if notes := strings.Join(f.notes, "\n"); strings.Contains(notes, "upper bound") != !mem.CanFlush() {
		t.Errorf("notes %q", notes)
	}
	for _, r := range f.memory.regions {
		if r.buf.Len() > maxMemory {
			t.Errorf("node %d: a region of %d bytes", r.node, r.buf.Len())
		}
	}
	f.memory.flush = true
	first := f.memory.regions[0]
	f.memory.regions = []*region{first, {node: 1, cpus: topotree.CPURange(2, 3), buf: first.buf}}
	defer func() { f.memory.regions = f.memory.regions[:1] }() // its buffer is freed once
	until := func() time.Time { return time.Now().Add(noBudget) }
	for name, stage := range map[string]func() error{
		"nodes":      func() error { return f.measureNodes(t.Context(), until()) },
		"saturation": func() error { return f.measureSaturation(t.Context(), until()) },
		"flows":      func() error { return f.measureFlows(t.Context(), until()) },
		"memory":     func() error { return f.measureMemory(t.Context(), until()) },
	} {
		if err := stage(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.profile.Matrices, f.profile.Sets = f.matrices, f.sets
	if err := f.profile.Check(); err != nil {
		t.Error(err)
	}
	seen := map[string]int{}
	for _, s := range f.sets {
		seen[s.Name]++
	}
	if seen[profiles.Saturation] == 0 || seen[profiles.Flows] == 0 || f.profile.Matrix(profiles.NodeMatrix) == nil {
		t.Errorf("measured %v and %d matrices", seen, len(f.matrices))
	}
}

// TestFlushedReads checks that a pass over flushed memory reads each byte of a slice at most once,
// also where a window would hold more, and that a sample has several passes of a small slice.
func TestFlushedReads(t *testing.T) {
	f := workersFor(t, described(t, "l3:1(size=512MiB) core:2"))
	f.memory.flush = true
	region := f.memory.regions[0].bytes()
	for _, c := range []struct{ slice, read, passes int }{
		{readChunk, readChunk, minSample / readChunk}, {2 * readChunk, 2 * readChunk, minSample / (2 * readChunk)},
		{len(region), maxFlushed, 1},
	} {
		f.memory.slices[0] = region[:c.slice]
		fig := f.readFor([]int{0}, time.Hour)
		if fig.passes != c.passes {
			t.Errorf("slices of %d bytes: %d passes, want %d", c.slice, fig.passes, c.passes)
		}
		for range 2 {
			fig.warm(0)
			if got := fig.work(0); int(got) != c.read {
				t.Errorf("a pass over %d bytes reads %g, want %d", c.slice, got, c.read)
			}
		}
	}
}
