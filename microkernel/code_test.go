package microkernel

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

var update = flag.Bool("update", false, "write testdata/code.golden")

// TestMachineCode compares the machine code of a sample of every space, with its prefetches, and of
// all wideners with digests, so that a change of structure changes no byte. Each line is a space,
// its number of specs, and a digest of every 31st and of all outer products, which few machines can
// run. -update writes the file.
func TestMachineCode(t *testing.T) {
	const file, every = "testdata/code.golden", 31
	const features = ^Features(0)
	var out strings.Builder
	for _, isa := range []ISA{Go, AVX2, AVX512, NEON} {
		for c := range kernel.Computes {
			for _, b := range qtype.All() {
				h := sha256.New()
				specs := Space(features, isa, c, b)
				for i, s := range specs {
					if i%every != 0 && s.Form != Outer {
						continue
					}
					for _, s := range []Spec{s, s.WithPrefetch(512), s.WithPrefetch(2048), s.WithSpread()} {
						code, _ := s.Assemble()
						fmt.Fprintf(h, "%s %x\n", s, code)
					}
				}
				if len(specs) > 0 {
					fmt.Fprintf(&out, "%s/%s/%s %d %x\n", isa, c, b, len(specs), h.Sum(nil)[:8])
				}
			}
		}
		for _, b := range qtype.All() {
			if code, err := isa.Target().GEMM.Widen(b); err == nil {
				fmt.Fprintf(&out, "%s/widen/%s %x\n", isa, b, sha256.Sum256(code))
			}
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, lines := strings.Split(out.String(), "\n"), strings.Split(string(want), "\n")
	for i, line := range got {
		if i >= len(lines) || line != lines[i] {
			t.Fatalf("line %d is %q: the code of these kernels changed", i+1, line)
		}
	}
}
