package tuner

import (
	"strings"
	"testing"

	"sandwich/plans/check"
	"sandwich/plans/summary"
	"sandwich/runtime/model/synth"
)

// TestTunePooled checks that only prefill of a pooled model is searched and raced, on texts packed
// into forwards, and that its plan is complete.
func TestTunePooled(t *testing.T) {
	o := tiny(t)
	c, ok := synth.Tiny("bert")
	if !ok {
		t.Fatal("no small bert")
	}
	c.Layers, c.Context = 2, 256
	o.Subject.Config, o.Subject.Plan.SeqMax = &c, 256
	b, err := Tune(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	shape, err := synth.Shape(c, o.Subject.Type)
	if err != nil {
		t.Fatal(err)
	}
	if err := check.Bundle(b, o.Subject.Profile, &shape); err != nil {
		t.Error(err)
	}
	if !b.Plan.Decode.PUs.Equal(b.Plan.Prefill.PUs) || len(b.Plan.Decode.Tables) == 0 || !summary.Of(b).Pooled {
		t.Errorf("prefill on PUs %s, decode on %s with %d tables", b.Plan.Prefill.PUs, b.Plan.Decode.PUs,
			len(b.Plan.Decode.Tables))
	}
	for _, x := range b.Evidence.Searches {
		if x.Phase != "prefill" {
			t.Errorf("a search in %s", x.Phase)
		}
	}
	for _, x := range b.Evidence.Finalists {
		if strings.HasPrefix(x.Name, "decode") {
			t.Errorf("a race of %s", x.Name)
		}
	}
	if len(b.Evidence.Searches) == 0 {
		t.Error("nothing was searched")
	}
	for _, r := range b.Evidence.Trace.Candidates {
		if r.DecodeRate != 0 || r.PrefillRate <= 0 || !r.PrefillPUs.Equal(r.DecodePUs) {
			t.Errorf("simulated %+v", r)
		}
	}
	if text := summary.Headline(&b.Plan, b.State()); strings.Contains(text, "decode") {
		t.Error(text)
	}
}
