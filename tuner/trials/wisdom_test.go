package trials

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/profiles/retention"
	"sandwich/tuner/search"
)

// keepOne stores one trial of a problem and returns the problem.
func keepOne(t *testing.T, w *Wisdom, name string, m int, share float64) search.Problem {
	t.Helper()
	key := plans.WeightKey{N: 64, K: 64, Type: "q8_0"}
	shape := plans.ModelShape{Arch: "llama", Name: "one", Hidden: 64, Layers: 1, Heads: 1, KVHeads: 1, HeadDim: 64,
		FFN: 64, Vocab: 64, Context: 64,
		Weights: []plans.WeightShape{{Role: "q", N: key.N, K: key.K, Type: key.Type, Count: 1}}}
	host, err := profiles.Builtin("kunpeng920")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := heuristic.Default(host, shape, heuristic.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	shapes, err := plan.TableShapes(plan.PUs())
	if err != nil {
		t.Fatal(err)
	}
	c := shapes[0]
	s, _ := plan.Decode.Lookup(c.WeightKey, m)
	r := &search.Result{Anchors: []search.Anchor{{M: m, Schedule: s, Seconds: []float64{1e-3, 2e-3}, Tried: 9}}}
	if err := w.Keep(name, r, nil, search.Standard, share); err != nil {
		t.Fatal(err)
	}
	return search.Problem{Key: c.WeightKey, Compute: c.Compute, Threads: c.Threads, Anchors: []int{m}}
}

// TestWisdomIsTakenOver checks that a run reuses a stored trial if the earlier search had about its
// time, that damaged lines and lines that do not fit are ignored, and that the lines after them are
// read.
func TestWisdomIsTakenOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wisdom-a-b.jsonl")
	open := func() *Wisdom {
		w, err := OpenWisdom(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		return w
	}
	p := keepOne(t, open(), "one", 1, 2)
	known, hints := open().Lookup("one", p, search.Quick, 3)
	if len(known) != 1 || known[0].Tried != 9 || !slices.Equal(known[0].Seconds, []float64{1e-3, 2e-3}) ||
		len(hints) != 0 {
		t.Fatalf("%+v %v", known, hints)
	}
	for name, miss := range map[string]func() ([]search.Anchor, map[int]plans.Schedule){
		"more time": func() ([]search.Anchor, map[int]plans.Schedule) {
			return open().Lookup("one", p, search.Quick, 9)
		},
		"more effort": func() ([]search.Anchor, map[int]plans.Schedule) {
			return open().Lookup("one", p, search.Full,
				1)
		},
	} {
		if known, hints := miss(); len(known) != 0 || len(hints) != 1 {
			t.Errorf("%s: %+v, %d hints", name, known, len(hints))
		}
	}
	q := p
	q.Compute++
	if known, hints := open().Lookup("one", q, search.Quick, 1); len(known)+len(hints) != 0 {
		t.Error("a schedule of another path is an answer")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data[:len(data)-9], 0o644); err != nil { // as kill -9 leaves it
		t.Fatal(err)
	}
	if known, _ := open().Lookup("one", p, search.Quick, 1); known != nil {
		t.Error("a torn line is an answer")
	}
	keepOne(t, open(), "two", 1, 2)
	if known, _ := open().Lookup("two", p, search.Quick, 1); len(known) != 1 {
		t.Error("what follows a torn line is lost")
	}
	if n, err := Forget(filepath.Dir(path)); err != nil || n == 0 {
		t.Errorf("forgot %d, %v", n, err)
	}
	if known, _ := open().Lookup("two", p, search.Quick, 1); known != nil {
		t.Error("it is not forgotten")
	}
}

// TestWisdomIsBounded checks that the file and the number of builds of a host are bounded.
func TestWisdomIsBounded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "wisdom-host-build.jsonl")
	w, err := OpenWisdom(path)
	if err != nil {
		t.Fatal(err)
	}
	p := keepOne(t, w, "old", 1, 2)
	keepOne(t, w, "new", 1, 2)
	w.Close()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, last, _ := strings.Cut(strings.TrimSuffix(string(data), "\n"), "\n")
	var many bytes.Buffer
	many.WriteString(first + "\n")
	for many.Len() < maxWisdom {
		many.WriteString(strings.Replace(last, `"m":1,`, `"m":`+string(rune('1'+many.Len()%9))+`,`, 1) + "\n")
	}
	many.WriteString(last + "\n")
	if err := os.WriteFile(path, many.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"wisdom-host-a.jsonl", "wisdom-host-b.jsonl", "wisdom-host-c.jsonl",
		"wisdom-other-d.jsonl"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if w, err = OpenWisdom(path); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if known, _ := w.Lookup("new", p, search.Quick, 1); len(known) != 1 {
		t.Error("the newest line is lost")
	}
	if st, err := os.Stat(path); err != nil || st.Size() > maxWisdom/2 {
		t.Errorf("%d bytes, %v", st.Size(), err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(files) != retention.Builds+1 {
		t.Errorf("left: %v", files)
	}
}

func FuzzWisdom(f *testing.F) {
	f.Add([]byte(`{"problem":"p","m":1,"effort":"quick","share_s":1,"seconds":[1],"schedule":{"bm":-1}}` + "\nx"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "wisdom-a-b.jsonl")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		w, err := OpenWisdom(path)
		if err != nil {
			return
		}
		defer w.Close()
		for _, l := range w.kept {
			p := search.Problem{Key: plans.WeightKey{N: 64, K: 64, Type: "q8_0"}, Threads: 2, Anchors: []int{l.M}}
			known, hints := w.Lookup(l.Problem, p, search.Quick, 0)
			for _, a := range known {
				if a.Schedule.Fits(p.Key, p.Compute, p.Threads) != nil {
					t.Fatalf("%+v does not fit", a)
				}
			}
			_ = hints
		}
	})
}
