package llm

import (
	"context"
	"strings"
	"testing"

	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/profiles"
)

func TestBenchSwitch(t *testing.T) {
	host, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	if host.CorePUs().Count() < 2 {
		t.Skip("needs two PUs; allow this process another one")
	}
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	f := singleFlags{session: modelflags.Flags{Compute: "auto", Ranks: 1, Threads: 2}, reps: 2}
	rows, err := f.runSwitch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		if len(r.Samples) != 2 || r.Median <= 0 || r.Moved != 0 || r.Switches < 6 ||
			r.Goal != []float64{10e-6, 100e-6}[i] {
			t.Errorf("%+v", r)
		}
		if strings.Contains(r.Decode, ",") || r.Decode == r.Prefill {
			t.Errorf("prefill on %s, decode on %s", r.Prefill, r.Decode)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.runSwitch(ctx); err == nil {
		t.Error("it went on after Ctrl-C")
	}
}
