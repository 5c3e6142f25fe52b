package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/gguf"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
)

// TestWeightsAreInMemoryOnce: loading takes at most 1.02 times the packed bytes of anonymous
// memory, whose figure `model inspect` states, and leaves none of the file's pages mapped in.
func TestWeightsAreInMemoryOnce(t *testing.T) {
	if !mem.Mapped || testing.Short() {
		t.Skip("buffers are on the Go heap, or a model of 170 MB is too much")
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	c, err := model.Preset("llama-160m")
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	must(model.Synth(context.Background(), path, c, model.Uniform(gguf.Q8_0), 1, nil))
	f, err := gguf.Open(path)
	must(err)
	defer f.Close()
	m, err := model.Load(f)
	must(err)
	host, err := profiles.Live()
	must(err)
	shape, err := model.ShapeOf(f)
	must(err)
	plan, err := heuristic.Default(host, shape, heuristic.Options{Threads: 1})
	must(err)
	shards, workers := divide(t, m, plan), testWorkers(t, 1)
	debug.FreeOSMemory()
	anonymous, mapped := resident(t)
	w, err := loadWeights(t.Context(), shards, plan, workers, nil)
	must(err)
	defer w.Free()
	debug.FreeOSMemory()
	nowAnonymous, nowMapped := resident(t)
	takes, refused := MemoryOf(m)
	must(errors.Join(refused...))
	packed := takes.Packed
	if grown := nowAnonymous - anonymous; grown > packed+packed/50 {
		t.Errorf("%d bytes of anonymous memory for %d of packed weights, %.3f times", grown, packed,
			float64(grown)/float64(packed))
	}
	if grown := nowMapped - mapped; grown > 8<<20 {
		t.Errorf("%d bytes of the file are still in this process's memory", grown)
	}
}

// resident is the anonymous and the file memory of this process.
func resident(t *testing.T) (anonymous, mapped int64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "RssAnon: %d kB", &anonymous)
		_, _ = fmt.Sscanf(line, "RssFile: %d kB", &mapped)
	}
	return anonymous << 10, mapped << 10
}
