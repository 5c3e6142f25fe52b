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
	"sandwich/runtime/exec/load"
	"sandwich/runtime/gguf"
	"sandwich/runtime/mem"
	"sandwich/runtime/model/modelfile"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/pool"
)

// TestWeightsAreInMemoryOnce checks that loading takes at most 1.02 times the packed bytes that
// `model inspect` prints of anonymous memory, and leaves no pages of the file resident.
func TestWeightsAreInMemoryOnce(t *testing.T) {
	if !mem.Mapped {
		t.Skip("race builds keep buffers on the Go heap; run without -race")
	}
	if testing.Short() {
		t.Skip("loads a model of 170 MB; run without -short")
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	c, err := synth.Preset("llama-160m")
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	must(synth.WriteFile(context.Background(), path, c, synth.Uniform(gguf.Q8_0), 1, nil))
	f, err := gguf.Open(path)
	must(err)
	defer f.Close()
	m, err := modelfile.Load(f)
	must(err)
	host, err := profiles.Live()
	must(err)
	shape, err := modelshape.Of(f)
	must(err)
	plan, err := heuristic.Default(host, shape, heuristic.Options{Threads: 1})
	must(err)
	workers, err := pool.New([]int{0}, pool.Options{})
	must(err)
	defer workers.Close()
	shards := divide(t, m, plan)
	debug.FreeOSMemory()
	anonymous, mapped := resident(t)
	w, err := load.Load(t.Context(), shards, plan, workers, load.Options{})
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

// resident returns the anonymous and the file memory of this process.
func resident(t *testing.T) (anonymous, mapped int64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "RssAnon: %d kB", &anonymous)
		_, _ = fmt.Sscanf(line, "RssFile: %d kB", &mapped)
	}
	return anonymous << 10, mapped << 10
}
