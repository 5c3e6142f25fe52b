package microkernel

import (
	"bytes"
	"strings"
	"testing"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

func TestSpecRoundTrip(t *testing.T) {
	for _, s := range spaces(1) {
		for _, s := range []Spec{s, s.WithPrefetch(1024)} {
			if s.Validate() != nil { // matrix units have no prefetch
				continue
			}
			if got, err := ParseSpec(s.String()); err != nil || got != s {
				t.Fatalf("ParseSpec(%q) = %v, %v", s, got, err)
			}
			var u Spec
			text, _ := s.MarshalText()
			if err := u.UnmarshalText(text); err != nil || u != s {
				t.Fatalf("UnmarshalText(%q) = %v, %v", text, u, err)
			}
		}
	}
}

// TestSpecRefusals checks that Build refuses every spec that cannot be built, with its fault,
// before it emits code. A bundle may contain any spec.
func TestSpecRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"avx512/f32/f32/40x16/ku1/load":                "MR 40",
		"avx512/f32/f32/14x24/ku1/load":                "NR 24",
		"avx512/f32/f32/14x32/ku3/load":                "KU 3",
		"avx512/f32/f32/14x32/ku0/load":                "KU 0",
		"avx512/f32/f32/16x32/ku1/load":                "35 vector registers and avx512 has 32",
		"avx2/f32/f32/6x16/ku1/embed":                  "only avx512",
		"avx2/int8/q8_0/1x16/ku32/load/vnni":           "does not exist on avx2",
		"avx512/int8/q8_0/1x16/ku32/load":              "needs a dot product",
		"avx512/int8/q8_0/1x128/ku32/load/madd":        "8 panels do not fit",
		"avx512/int8/f32/1x16/ku32/load/vnni":          "quantized weights",
		"avx512/f32/q8_0/1x16/ku8/load":                "KU of a kernel for quantized weights must be 32",
		"avx512/f32/bf16/1x16/ku1/load":                "even",
		"avx512/f32/f32/1x16/ku1/load/vnni":            "has no dot product",
		"avx512/bf16/f32/1x16/ku4/load/dpbf16":         "path bf16 is for bf16 weights",
		"avx512/bf16/bf16/1x16/ku4/load":               "needs a dot product of bfloat16",
		"avx512/bf16/bf16/1x16/ku4/load/vnni":          "needs a dot product of bfloat16",
		"avx2/bf16/bf16/1x16/ku4/load/dpbf16":          "does not exist on avx2",
		"avx512/bf16/bf16/1x16/ku8/load/bfdot":         "does not exist on avx512",
		"avx512/bf16/bf16/1x16/ku1/load/dpbf16":        "even",
		"neon/bf16/bf16/4x16/ku4/lane/bfmmla":          "multiple of 8",
		"neon/bf16/bf16/6x16/ku8/lane/bfmmla":          "35 vector registers and neon has 32",
		"avx512/int8/q8_0/1x16/ku32/load/dpbf16":       "dot product of integers",
		"avx512/int8-k/q8_0/1x16/ku32/load/vnni":       "blocks of 256 with integer scales",
		"avx512/int8-k/q4_k/1x16/ku32/load/dpbf16":     "dot product of integers",
		"avx512/int8-k/q4_k/33x64/ku32/load/amx":       "MR 33",
		"avx512/int8-k/q4_k/32x80/ku32/load/amx":       "64 columns",
		"avx512/int8-k/q4_k/8x16/ku32/once/vnni":       `form "once" exists for`,
		"neon/int8-k/q4_k/17x16/ku32/outer/mopa":       "at most 16 rows",
		"neon/int8-k/q4_k/8x16/ku32/outer/mopa/pf64":   "do not support software prefetch",
		"avx512/int8/q4_k/8x16/ku32/overlap/vnni":      "form overlap exists for",
		"avx512/int8/q4_k/8x16/ku32/overlap/amx":       "amx has neither",
		"avx512/bf16-tile/bf16/1x16/ku32/load":         "needs the dot product tdpbf16",
		"avx512/bf16-tile/bf16/1x16/ku16/load/tdpbf16": "must be 32",
		"avx512/bf16-tile/f16/1x16/ku32/load/tdpbf16":  "path bf16-tile is for bf16 weights",
		"avx512/bf16/bf16/1x16/ku32/load/tdpbf16":      "needs a dot product of bfloat16",
		"avx512/f32/f32/1x16/ku1/load/pf100":           "prefetch distance 100",
		"neon/f32/f32/7x16/ku4/lane":                   "37 vector registers and neon has 32",
		"neon/f32/f32/1x16/ku2/lane":                   "multiple of 4",
		"neon/f32/q8_0/8x16/ku32/outer":                "do not support quantized weights",
		"neon/int8/q8_0/8x16/ku32/outer/sdot":          "dot product mopa",
		"neon/int8/q8_0/8x16/ku32/lane/mopa":           "outer products",
		"neon/int8/q8_0/16x32/ku32/outer/mopa":         "16 columns",
		"neon/int8/q8_0/17x16/ku32/outer/mopa":         "16 rows",
		"avx512/int8/q8_0/8x16/ku32/load/mopa":         "does not exist on avx512",
		"neon/f32/f32/16x64/ku16/outer":                "48 columns",
		"avx512/f32/f32/8x16/ku16/outer":               "only neon",
		"avx2/f32/f32/1x16/ku4/lane":                   "only neon",
		"avx10/f32/f32/1x16/ku1/load":                  `unknown instruction set "avx10"`,
		"avx512/fp8/f32/1x16/ku1/load":                 `unknown compute path "fp8"`,
		"avx512/f32/q9/1x16/ku1/load":                  `weight type "q9"`,
		"avx512/f32/f32/1x16/ku1":                      "want isa/compute",
		"avx512/f32/f32/ax16/ku1/load":                 "MRxNR",
		"avx512/f32/f32/1x16/k1/load":                  "ku",
		"avx512/f32/f32/1x16/ku1/gather":               "unknown form",
		"avx512/f32/f32/1x16/ku1/load/turbo":           "turbo",
		"avx512/f32/f32/1x16/ku1/load/pf64/pf128":      "write it as avx512/f32/f32/1x16/ku1/load/pf128",
		"avx512/int8/q8_0/1x16/ku32/load/madd/vnni":    "write it as avx512/int8/q8_0/1x16/ku32/load/vnni",
		"avx512/f32/f32/+1x016/ku1/load":               "write it as avx512/f32/f32/1x16/ku1/load",
		"avx512/f32/f32/99999999999999x16/ku1/load":    "MR 99999999999999",
	} {
		var s Spec
		if err := s.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
	if _, err := Build(Spec{ISA: NEON}); err == nil {
		t.Error("an invalid spec was built")
	}
}

// TestDeterministic checks that equal specs give equal bytes.
func TestDeterministic(t *testing.T) {
	const features = HasAVX2 | HasAVX512 | HasVNNI | HasAVXVNNI | HasNEON | HasDotProd | HasI8MM | HasSME | HasSME512 |
		HasSMEInt8 | HasAMX | HasBF16 | HasArmBF16
	var specs []Spec
	for _, isa := range features.ISAs() {
		for c := range kernel.Computes {
			for _, wt := range qtype.All() {
				if sp := Space(features, isa, c, wt); len(sp) > 0 && isa != Go {
					specs = append(specs, sp[0], sp[len(sp)/2])
				}
			}
		}
	}
	for _, s := range specs {
		a, err := s.Assemble()
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := s.Assemble(); !bytes.Equal(a, b) {
			t.Errorf("%s: two assemblies differ", s)
		}
	}
}

// eachValid visits every spec that is valid, on whatever machine.
func eachValid(visit func(Spec)) {
	for _, isa := range []ISA{AVX2, AVX512, NEON} {
		for c := range kernel.Computes {
			for _, b := range qtype.All() {
				for _, d := range append([]Dot{NoDot}, isa.Target().Dots...) {
					for f := range kernel.Forms {
						for ku := 1; ku <= kernel.MaxKU; ku *= 2 {
							s := Spec{ISA: isa, Compute: c, B: b, MR: 1, NR: PanelWidth, KU: ku, Form: f, Dot: d}
							if s.Validate() == nil { // then larger tiles may be too: there are only upper limits
								eachValidTile(s, visit)
							}
						}
					}
				}
			}
		}
	}
}

func eachValidTile(s Spec, visit func(Spec)) {
	for s.NR = PanelWidth; s.NR <= kernel.MaxNR; s.NR += PanelWidth {
		for s.MR = 1; s.MR <= kernel.MaxMR; s.MR++ {
			for _, s := range []Spec{s, s.WithPrefetch(kernel.MaxPrefetch), s.WithSpread()} {
				if s.Validate() == nil {
					visit(s)
				}
			}
		}
	}
}

// TestValidSpecsAssemble checks that every valid spec has enough registers and encodable
// instructions, since an untrusted bundle may ask for any of them. Short runs check every eighth
// spec, -long all.
func TestValidSpecsAssemble(t *testing.T) {
	n := 0
	eachValid(func(s Spec) {
		if n++; n%8 != 0 && !*long {
			return
		}
		if _, err := s.Assemble(); err != nil {
			t.Error(err)
		}
	})
	if n == 0 {
		t.Error("no spec is valid")
	}
	t.Logf("%d specs", n)
}

// TestBuildShares checks that a kernel that is built twice, or is the tail of another one, is one
// function.
func TestBuildShares(t *testing.T) {
	host := Host()
	if jit.Race || !host.Has(HasAVX2) {
		t.Skipf("no generated kernels on this CPU (%s) or in race builds", Host())
	}
	big := Spec{ISA: AVX2, B: F32, MR: 6, NR: 16, KU: 1}
	small := big
	small.MR = 4
	ks, err := BuildAll([]Spec{big, small, big})
	if err != nil {
		t.Fatal(err)
	}
	if ks[0].tiles.Funcs[3] != ks[1].tiles.Funcs[3] || ks[0].tiles.Funcs[5] != ks[2].tiles.Funcs[5] {
		t.Error("equal tiles are different functions")
	}
	again, err := Build(big)
	if err != nil || again != ks[0] || ks[0] != ks[2] {
		t.Errorf("BuildAll built kernel %s twice: %v", big, err)
	}
}

func BenchmarkBuildAll(b *testing.B) {
	specs := Space(HasAVX2|HasAVX512, AVX512, ComputeF32, F32)
	for b.Loop() {
		n := 0
		for _, s := range specs[:10] {
			_ = s.EachTile(func(t Spec) error {
				code, err := t.Assemble()
				n += len(code)
				return err
			})
		}
		b.ReportMetric(float64(n), "bytes")
	}
}
