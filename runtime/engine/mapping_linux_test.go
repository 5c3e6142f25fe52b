package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/runtime/api"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/synth"
)

// onDisk writes a small model to a file of its own and opens it.
func onDisk(t *testing.T, typ gguf.Type, tied bool) (path string, f *gguf.File) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "m.gguf")
	c := model.Config{Name: "tiny", Arch: "llama", Eps: 1e-5, RopeBase: 10000, Tied: tied,
		Dims: model.Dims{Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 128, Vocab: tinyVocab,
			Context: 256}}
	if err := synth.WriteFile(context.Background(), path, c, synth.Uniform(typ), 3, nil); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return path, f
}

// TestServingNeverReadsTheFile truncates the model's file, and overwrites it, under a running
// engine: it answers as it did before, whether the embedding is a table of its own or the head, and
// whatever number of ranks holds that.
func TestServingNeverReadsTheFile(t *testing.T) {
	skipUnderRace(t)
	for _, c := range []struct {
		typ   gguf.Type
		tied  bool
		ranks []int
	}{{gguf.F32, false, nil}, {gguf.Q8_0, true, nil}, {gguf.Q8_0, false, []int{1, 1}}, {gguf.F16, true, []int{2, 1}}} {
		t.Run(fmt.Sprintf("%s/tied=%v/%v", c.typ, c.tied, c.ranks), func(t *testing.T) {
			path, f := onDisk(t, c.typ, c.tied)
			o := optionsFor(t, f)
			if len(c.ranks) > 0 {
				plan, err := planFor(t, f, heuristic.Options{Service: crews(c.ranks...)})
				if err != nil {
					t.Fatal(err)
				}
				o.Plan, o.Unpinned = plan, true
			}
			e := open(t, o)
			req := api.Request{Prompt: tinyPrompt(1, 40), MaxTokens: 8, IgnoreEOS: true}
			before, _ := generate(t, e, req)
			size := f.Size()
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
			req.Prompt = slices.Concat(tinyPrompt(2, 70), req.Prompt) // nothing of it is cached
			generate(t, e, req)
			if err := os.WriteFile(path, bytes.Repeat([]byte{0xFF}, int(size)), 0o666); err != nil {
				t.Fatal(err)
			}
			req.Prompt = tinyPrompt(1, 40)
			if after, _ := generate(t, e, req); !slices.Equal(after, before) {
				t.Errorf("tokens %v, before the file was overwritten %v", after, before)
			}
		})
	}
}

// TestLoadingSurvivesAWriter loads files that are cut, or written to, after they were opened: the
// error says so.
func TestLoadingSurvivesAWriter(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"cut to nothing": func(path string) error { return os.Truncate(path, 0) },
		"cut by half": func(path string) error {
			st, err := os.Stat(path)
			return errors.Join(err, os.Truncate(path, st.Size()/2))
		},
		"longer": func(path string) error {
			w, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			_, err = w.Write([]byte("x"))
			return errors.Join(err, w.Close())
		},
	} {
		for _, tied := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/tied=%v", name, tied), func(t *testing.T) {
				path, f := onDisk(t, gguf.Q8_0, tied)
				o := optionsFor(t, f)
				if err := spoil(path); err != nil {
					t.Fatal(err)
				}
				r, err := forward.Open(t.Context(), o.withBlocks(4))
				if err == nil {
					r.Close()
				}
				if !errors.Is(err, gguf.ErrChanged) || strings.Count(err.Error(), path) != 1 {
					t.Errorf("loading: %v", err)
				}
			})
		}
	}
}

// withBlocks are the options of a runner.
func (o Options) withBlocks(n int) forward.Options {
	r := o.Options
	r.Blocks, r.LogitRows = n, 4
	return r
}
