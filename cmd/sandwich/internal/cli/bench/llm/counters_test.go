package llm

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"sandwich/runtime/counters"
)

// fakeCounters count a thousand instructions and 500 cycles with every reading, and know nothing of
// caches.
type fakeCounters struct{ reads float64 }

func (f *fakeCounters) Open([]int) counters.Set { return f }
func (f *fakeCounters) Close()                  {}
func (f *fakeCounters) Read() (c counters.Counts) {
	f.reads++
	for i := range c {
		c[i].Missing = errors.New("no caches here")
	}
	c[counters.Instructions] = counters.Value{Count: 1000 * f.reads}
	c[counters.Cycles] = counters.Value{Count: 500 * f.reads}
	return c
}

// TestCounters runs bench llm on the embedded model with a fake processor.
func TestCounters(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	f := llmFlags{testFlags: testFlags{prompt: []int{4}, gen: []int{2}, batch: 1}, reps: 2, counters: true,
		source: &fakeCounters{}}
	f.session.Compute = "auto"
	rows, err := f.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if len(r.Counters) == 0 || r.Counters[0].Name != "ipc" || r.Counters[0].Value == nil ||
			*r.Counters[0].Value != 2 {
			t.Errorf("%s: %+v", r.Test, r.Counters)
		}
	}
	var out bytes.Buffer
	if err := printLLM(&out, rows, "table"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ipc ", "not available here: l3lpki, llc_miss, dtlb_miss, remote,",
		": no caches here"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Count(out.String(), "no caches here") != 1 {
		t.Errorf("a reason is said more than once:\n%s", out.String())
	}
}
