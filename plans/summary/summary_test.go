package summary_test

import (
	"encoding/json"
	"slices"
	"testing"

	"sandwich/plans/bundle"
	"sandwich/plans/internal/bundletest"
	"sandwich/plans/summary"
)

func TestShow(t *testing.T) {
	b := bundletest.New(t)
	s := summary.Of(b)
	if s.Model != "llama-160m" || !slices.Contains(s.ISA, "avx512_vnni") || s.Evidence == nil ||
		s.Evidence.Rejected != 1 || len(s.Prefill) != 4 {
		t.Errorf("%+v", s)
	}
	if r := s.Decode[0].Rules[0]; r.M != "1-2" || r.Ways != "1x2" || s.Prefill[0].Rules[0].Ways != "dynamic" {
		t.Errorf("rule %+v", r)
	}
	want := "plan tuned on a test (tuned): prefill on PUs 0-3, decode on PUs 0,2, f16 cache"
	if got := summary.Headline(&b.Plan, b.State()); got != want {
		t.Errorf("headline %q", got)
	}
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
	if summary.Of(&bundle.Bundle{Plan: b.Plan, Host: b.Host}).Evidence != nil {
		t.Error("a plan without evidence shows some")
	}
}
