package heuristic

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"

	"sandwich/profiles"
)

var update = flag.Bool("update", false, "rewrite testdata/plans.golden")

// TestPlansUnchanged compares the digests of untuned plans for the built-in machines with golden
// ones. After an intended change of the heuristic, -update rewrites them.
func TestPlansUnchanged(t *testing.T) {
	var out bytes.Buffer
	for _, name := range profiles.BuiltinNames() {
		host, err := profiles.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, typ := range []string{"f32", "f16", "bf16", "q8_0", "q4_0", "iq4_nl", "q2_k", "q6_k"} {
			shape := decoder("golden", typ, 1024, 16, 4, 5632, 32003)
			shape.Context = 4096
			for _, o := range goldenOptions(typ) {
				p, err := Default(host, shape, o)
				if err != nil {
					t.Fatalf("%s %s %+v: %v", name, typ, o, err)
				}
				p.Version = 2 // the digests were recorded with that version of the format
				fmt.Fprintf(&out, "%s %s compute=%s threads=%d tp=%d isa=%s %.24s\n", name, typ, o.Compute, o.Threads,
					o.TP, o.ISA, p.Digest())
			}
		}
	}
	const file = "testdata/plans.golden"
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := bytes.Split(out.Bytes(), []byte("\n"))
	lines := bytes.Split(want, []byte("\n"))
	if len(got) != len(lines) {
		t.Fatalf("%d plans, %d in %s", len(got), len(lines), file)
	}
	for i := range got {
		if !bytes.Equal(got[i], lines[i]) {
			t.Errorf("%s, want %s", got[i], lines[i])
		}
	}
}

func goldenOptions(typ string) []Options {
	if typ != "q8_0" && typ != "bf16" {
		return []Options{{}}
	}
	return []Options{{}, {Compute: "f32", Threads: 3}, {Compute: "int8", TP: 2, ISA: "go"}}
}
