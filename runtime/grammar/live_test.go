package grammar

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"sandwich/runtime/grammar/internal/automaton"
)

// live is what the last collection found in use, and stacks.
func live() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() + s[1].Value.Uint64())
}

// peak is how much more than before is in use at once while f runs, with a collection whenever a
// third was added.
func peak(f func()) (largest int64) {
	defer debug.SetGCPercent(debug.SetGCPercent(30))
	runtime.GC()
	begin := live()
	done, top := make(chan struct{}), make(chan int64)
	go func() {
		largest := int64(0)
		for {
			select {
			case <-done:
				top <- largest
				return
			case <-time.After(time.Millisecond):
				largest = max(largest, live()-begin)
			}
		}
	}()
	f()
	runtime.GC()
	last := live() - begin
	close(done)
	return max(<-top, last)
}

// nasty are requests that took more than 256 MiB at once, or come near it, by what they are
// refused with; empty where they are served.
var nasty = map[string][2]string{
	"patterns": {`{"anyOf":[` + numbered(600, `{"type":"string","pattern":"^\\p{L}{1,300}#$"}`) + `]}`, ""},
	"values":   {`{"examples":[` + strings.Repeat("[],", 1_000_000) + `1]}`, "#/examples/"},
	"classes":  {`{"type":"string","pattern":"` + strings.Repeat(`\\p{L}`, 20_000) + `"}`, "#/pattern"},
	"explosions": {`{"allOf":[` + numbered(16, `{"type":"string","pattern":"(\\p{L}|#)*a(\\p{Lu}|b){12}#c"}`) + `]}`,
		"expressions"},
	"properties": {`{"properties":{` + numbered(60_000, `"p#":{}`) + `}}`, "more than the limit of 24 MiB"},
	"empty ways": {`root ::= ` + strings.Repeat(`"a"? `, 100_000) + `"b"`, ""},
	"states":     {`{"type":"string","pattern":"(a|b| ).{300}$"}`, ""},
}

func numbered(n int, each string) string {
	out := make([]string, n)
	for i := range out {
		out[i] = strings.ReplaceAll(each, "#", fmt.Sprint(i))
	}
	return strings.Join(out, ",")
}

// A request takes 256 MiB at most while its grammar is compiled and answers are made under it.
func TestLiveMemory(t *testing.T) {
	v := testVocab(20_000, 8)
	for name, c := range nasty {
		text, refused, begin := c[0], c[1], time.Now()
		var g *Grammar
		var err error
		limit := peak(func() {
			if strings.HasPrefix(text, "root") {
				g, err = fromGBNF(text, v)
			} else {
				g, err = FromSchema([]byte(text))
			}
			if err != nil {
				return
			}
			m := g.Matcher(v)
			r := rand.New(rand.NewPCG(3, 3))
			for begin := []byte(`"`); m.AcceptText(begin) == nil; begin = []byte{"ab "[r.IntN(3)]} {
				if m.Needs() > 1 && m.Mask(1000).Count() == 0 {
					t.Errorf("%s: nothing may follow", name)
				}
				if r.IntN(2500) == 0 {
					break
				}
			}
		})
		t.Logf("%s: %d MiB, %v, %v", name, limit>>20, time.Since(begin), err)
		if limit > 256<<20 {
			t.Errorf("%s: %d MiB are in use at once", name, limit>>20)
		}
		if (err != nil) != (refused != "") || err != nil && !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Answers that run at once under one grammar share what one may keep.
func TestAnswersShareStates(t *testing.T) {
	g := schemaOf(t, nasty["states"][0])
	v := testVocab(3000, 8)
	kept := func(answers int) int64 {
		g.masks.memory.answers.Store(int64(answers) - 1)
		m := g.Matcher(v)
		defer m.End()
		if err := m.AcceptText([]byte(`"`)); err != nil {
			t.Fatal(err)
		}
		for i := range 250 {
			if err := m.AcceptText([]byte{"ab "[automaton.Mixed(uint64(i))%3]}); err != nil {
				t.Fatal(err)
			}
		}
		return m.Memory()
	}
	alone := kept(1)
	if shared := kept(1 << 10); shared > alone/2 {
		t.Errorf("%d bytes alone, %d together with 1,023 others", alone, shared)
	}
}

// TestPartsAreBounded checks that a vocabulary keeps the parts that were used last within its
// bytes, those that answers use among them, and makes no part for which there is no room.
func TestPartsAreBounded(t *testing.T) {
	v := testVocab(3000, 8)
	v.maxParted = 3 * v.json.memory()
	of := func(without byte) (c automaton.Classes) {
		c = automaton.JSONClasses
		c[0] &^= 1 << automaton.ClassOfByte[without]
		return c
	}
	use := func(without byte) *slice {
		made := 0
		s := v.byClasses(of(without), &made)
		if v.parted > v.maxParted {
			t.Fatalf("%d bytes of at most %d", v.parted, v.maxParted)
		}
		return s
	}
	free := func(s *slice) { v.release(vocabParts{used: []*partUse{&s.use}}) }
	var first *slice
	for b := byte('#'); b < '['; b++ {
		first = use('!')
		free(first)
		free(use(b))
	}
	if v.slices[of('!')] != first || v.slices[of('#')] != nil {
		t.Error("the part that was used least recently is kept, or the one that was used last is not")
	}
	var inUse []*slice
	for b := byte('#'); b < '['; b++ {
		if s := use(b); s != nil {
			inUse = append(inUse, s)
		}
	}
	if n := len(inUse); n == 0 || n == '['-'#' {
		t.Errorf("%d of %d parts are in use at once: the test tests nothing", n, '['-'#')
	}
	for _, s := range inUse {
		free(s)
	}
	if use('z') == nil {
		t.Error("no part is made after those in use were released")
	}
}
