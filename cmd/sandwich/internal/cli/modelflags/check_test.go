package modelflags

import (
	"strings"
	"testing"
)

// TestCheck checks that an unknown value is refused before the model and the machine are looked at,
// with the name of the flag and the values.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		flags Flags
		want  []string
	}{
		{Flags{KV: "absurd"}, []string{"--kv", `"absurd"`, "f16, f32 or q8_0"}},
		{Flags{ISA: "absurd"}, []string{"--isa", `"absurd"`, "go, avx2, avx512, neon"}},
		{Flags{ISA: "avx2,1=absurd"}, []string{"--isa", `"absurd"`, "go, avx2, avx512, neon"}},
		{Flags{Compute: "absurd"}, []string{"--compute absurd", "int8"}},
		{Flags{Attention: "absurd"}, []string{"--attention", `"absurd"`, "f32, dpbf16, tdpbf16, dpbusd"}},
		{Flags{deviceOps: "absurd"}, []string{"--device-ops absurd", "all or dense"}},
		{Flags{devicePhases: "absurd"}, []string{"--device-phases absurd", "prefill, decode or both"}},
	} {
		err := c.flags.Check()
		if err == nil {
			t.Errorf("%+v is accepted", c.flags)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q lacks %q", err, w)
			}
		}
	}
	if err := (&Flags{KV: "f16", ISA: "go,1=avx2", Compute: "f32", Attention: "f32"}).Check(); err != nil {
		t.Error(err)
	}
}
