package amd64

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"sandwich/microkernel/internal/kernel"
)

// TestDetectAgainstLinux compares with the flags in /proc/cpuinfo, which Linux also masks by the
// registers it saves.
func TestDetectAgainstLinux(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("compares the flags of x86 CPUs; run on amd64")
	}
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Skipf("needs Linux with /proc mounted: %v", err)
	}
	_, line, ok := strings.Cut(string(info), "\nflags\t")
	if !ok {
		t.Skip("/proc/cpuinfo has no flags: needs Linux on x86")
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
	for bit, want := range map[kernel.Features]bool{
		kernel.HasAVX2:    all("avx", "avx2", "fma", "f16c"),
		kernel.HasAVX512:  all("avx512f", "avx512bw", "avx512dq", "avx512vl"),
		kernel.HasVNNI:    all("avx512_vnni"),
		kernel.HasAVXVNNI: all("avx_vnni"),
		kernel.HasBF16:    all("avx512_bf16"),
		kernel.HasVBMI:    all("avx512vbmi"),
		kernel.HasFP16:    all("avx512_fp16"),
	} {
		if got := detect().Has(bit); got != want {
			t.Errorf("%s: detected %v, /proc/cpuinfo says %v", bit, got, want)
		}
	}
}
