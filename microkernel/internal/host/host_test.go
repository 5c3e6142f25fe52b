package host

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"sandwich/microkernel/internal/kernel"
)

// Features fall with what they stand on.
func TestFeaturesClosed(t *testing.T) {
	for have, want := range map[kernel.Features]kernel.Features{
		kernel.HasAVX512 | kernel.HasVNNI:                   0,
		kernel.HasAVX2 | kernel.HasVNNI | kernel.HasAVXVNNI: kernel.HasAVX2 | kernel.HasAVXVNNI,
		kernel.HasAVX2 | kernel.HasAVX512 | kernel.HasVNNI | kernel.HasDotProd: kernel.HasAVX2 | kernel.HasAVX512 |
			kernel.HasVNNI,
		kernel.HasNEON | kernel.HasDotProd | kernel.HasI8MM | kernel.HasAVXVNNI: kernel.HasNEON | kernel.HasDotProd |
			kernel.HasI8MM,
		kernel.HasNEON | kernel.HasSME512 | kernel.HasSMEInt8: kernel.HasNEON,
	} {
		if got := have.Closed(); got != want {
			t.Errorf("%s: %s, want %s", have, got, want)
		}
	}
}

func TestHostLimit(t *testing.T) {
	t.Setenv(variable, "avx2,avx513")
	if err := Error(); err == nil || !strings.Contains(err.Error(), "avx513") {
		t.Errorf("error %v", err)
	}
	t.Setenv(variable, "avx2,avx512")
	if f, set, err := hostLimit(); !set || err != nil || f != kernel.HasAVX2|kernel.HasAVX512 {
		t.Errorf("%s, %v, %v", f, set, err)
	}
}

// TestHostAgainstKernel compares with the flags the Linux kernel prints, which are also masked by
// what it saves.
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
			t.Errorf("%s: we say %v, /proc/cpuinfo says %v", bit, got, want)
		}
	}
}
