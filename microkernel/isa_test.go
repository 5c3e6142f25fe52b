package microkernel

import (
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestNamesRoundTrip(t *testing.T) {
	for _, i := range []ISA{Go, AVX2, AVX512, NEON} {
		got, err := ParseISA(i.String())
		if err != nil || got != i {
			t.Errorf("ParseISA(%s) = %v, %v", i, got, err)
		}
	}
	if _, err := ParseISA("avx10"); err == nil || !strings.Contains(err.Error(), "avx512") {
		t.Errorf("unknown ISA: %v", err)
	}
	f := HasAVX2 | HasVNNI | HasI8MM
	if got, err := ParseFeatures(f.String()); err != nil || got != f {
		t.Errorf("ParseFeatures(%q) = %v, %v", f, got, err)
	}
	if _, err := ParseFeatures("avx2,mmx"); err == nil {
		t.Error("mmx accepted")
	}
}

// TestHostAgainstKernel compares with the flags the Linux kernel prints, which are also masked by what it saves.
func TestHostAgainstKernel(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("x86 flags; an emulator of another architecture shows those of its host")
	}
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Skip(err)
	}
	_, line, ok := strings.Cut(string(info), "\nflags\t")
	if !ok {
		t.Skip("no x86 flags in /proc/cpuinfo")
	}
	line, _, _ = strings.Cut(line, "\n")
	flags := map[string]bool{}
	for _, f := range strings.Fields(line) {
		flags[f] = true
	}
	all := func(names ...string) bool {
		for _, n := range names {
			if !flags[n] {
				return false
			}
		}
		return true
	}
	for bit, want := range map[Features]bool{
		HasAVX2:    all("avx", "avx2", "fma", "f16c"),
		HasAVX512:  all("avx512f", "avx512bw", "avx512dq", "avx512vl"),
		HasVNNI:    all("avx512_vnni"),
		HasAVXVNNI: all("avx_vnni"),
		HasBF16:    all("avx512_bf16"),
		HasVBMI:    all("avx512vbmi"),
		HasFP16:    all("avx512_fp16"),
	} {
		if got := detect().Has(bit); got != want {
			t.Errorf("%s: we say %v, /proc/cpuinfo says %v", bit, got, want)
		}
	}
}
