package modelset

import (
	"maps"
	"strings"
	"testing"

	"sandwich/runtime/mem"
	"sandwich/runtime/modelcache"
)

// onePool checks the lines about pools of models on the same PUs.
func onePool(t *testing.T) (detail func(text string)) {
	return func(text string) {
		if !strings.HasPrefix(text, "1 pool of worker threads: PUs ") {
			t.Errorf("models on the same PUs: %s", text)
		}
	}
}

// TestUnload checks that models that are unloaded in any order return all memory and worker
// threads, and which pools of threads are reported meanwhile.
func TestUnload(t *testing.T) {
	if raceEnabled {
		t.Skip("loads are slow in race builds; runtime/engine closes engines of one pool in them")
	}
	dir := models(t)
	o := options(t, catalogOf(t, dir, `
models:
  - {name: tales, model: tales.gguf, context: 64}
  - {name: llama, model: llama-tiny.gguf, context: 64}
  - {name: embed, model: bert-tiny.gguf, context: 64}
`))
	used := make(chan int64, 100) // two values for each load, one for the end of each unload
	o.Observe = func(m modelcache.Memory) { used <- m.Total() }
	var details []string
	check := onePool(t)
	o.Detail = func(text string) {
		check(text)
		details = append(details, text)
	}
	s := open(t, o)
	base := mem.Total()
	for _, order := range [][]int{{0, 1, 2}, {2, 0, 1}} {
		details = nil
		for _, m := range s.models {
			_, release, err := m.entry.Acquire(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			release()
			<-used
			<-used
		}
		if len(details) != 3 || !strings.HasSuffix(details[0], "for 1 model") ||
			!strings.HasSuffix(details[2], "for 3 models") {
			t.Errorf("pools are reported as %q", details)
		}
		loaded, counted := mem.Total(), int64(0)
		for _, i := range order {
			m := s.models[i]
			before := mem.Total()
			e := m.entry
			m.entry = s.cache.Add(m.source, false)
			e.Retire()
			counted = <-used
			if mem.Total() >= before {
				t.Errorf("%s returns none of %d bytes", m.of.Name, before)
			}
		}
		if n := mem.Total(); loaded <= base || n != base || counted != 0 || len(s.pools.List()) != 0 {
			t.Errorf("of %d bytes %d are left, and before %d; %d are counted; pools %v", loaded, n, base, counted,
				s.pools.List())
		}
	}
}

// TestFreeMemory checks the default budget: of machines whose nodes have gaps in their numbers, and
// of those that have no free memory or state none.
func TestFreeMemory(t *testing.T) {
	for _, c := range []struct {
		name  string
		free  int64
		nodes map[int]int64
		want  modelcache.Budget
	}{
		{"two nodes", 3200, map[int]int64{0: 1600, 1: 0},
			modelcache.Budget{Total: 3000, Nodes: modelcache.Memory{0: 1500, 1: 0}}},
		{"gaps", 3200, map[int]int64{1: 1600, 8: 320, 252: 16},
			modelcache.Budget{Total: 3000, Nodes: modelcache.Memory{1: 1500, 8: 300, 252: 15}}},
		{"nothing free", 0, nil, modelcache.Budget{Total: 1, Nodes: modelcache.Memory{}}},
		{"unknown", -1, nil, modelcache.Budget{Nodes: modelcache.Memory{}}},
	} {
		got := freeMemory(c.free, func(node int) int64 {
			if n, ok := c.nodes[node]; ok {
				return n
			}
			return -1
		})
		if got.Total != c.want.Total || !maps.Equal(got.Nodes, c.want.Nodes) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
