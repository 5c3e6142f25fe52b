package planpage

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandwich/plans/bundle"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/refdata"
	"sandwich/runtime/server/status"
	"sandwich/runtime/session"
)

// TestDefaultPlan describes the default plan of the embedded model on a machine that was probed.
func TestDefaultPlan(t *testing.T) {
	host, err := profiles.Load(refdata.Path(t, "machines/zen5-2c/host.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open("", session.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Profile = host
	if s.Plan, err = heuristic.Default(host, s.Shape, heuristic.Options{}); err != nil {
		t.Fatal(err)
	}
	p := Of(s, 6)
	untuned := !p.Tuned && p.State == string(bundle.Untuned) && len(p.Story) == 0
	if !p.Text || !untuned || p.Tree == nil || len(p.Ranks) != 1 {
		t.Errorf("%+v", p)
	}
	if n := len(p.Prefill.Ceilings); n != 1 {
		t.Errorf("%d ceilings of prefill", n)
	}
	var rows []int
	for _, c := range p.Decode.Ceilings {
		rows = append(rows, c.Rows)
		if c.Rate <= 0 || c.By == "" {
			t.Errorf("the ceiling of %d sequences is %v tokens/s by %q", c.Rows, c.Rate, c.By)
		}
	}
	if want := []int{1, 2, 4, 6}; !slices.Equal(rows, want) {
		t.Errorf("ceilings of %v sequences, want %v", rows, want)
	}
	if text, err := json.Marshal(p); err != nil || strings.Contains(string(text), `\u0000`) {
		t.Errorf("%v: %s", err, text)
	}
}

// TestStories describes the search of every plan in the test data.
func TestStories(t *testing.T) {
	paths, err := filepath.Glob("../../../../plans/testdata/v*/*.plan")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d plans: %v", len(paths), err)
	}
	races := 0
	for _, path := range paths {
		b, err := bundle.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		var p status.Plan
		addStory(&p, b)
		for _, r := range p.Races {
			races++
			if r.Verdict == "" || len(r.Arms) == 0 || r.Arms[0].Outcome != "winner" || len(r.Arms[0].Tests) == 0 {
				t.Errorf("%s: %+v", path, r)
			}
		}
		if (b.Evidence.Strategy != "") != (p.Outcome != "") {
			t.Errorf("%s: strategy %q, outcome %q", path, b.Evidence.Strategy, p.Outcome)
		}
	}
	if races == 0 {
		t.Error("no plan has a race")
	}
}
