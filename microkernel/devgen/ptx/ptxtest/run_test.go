package ptxtest

import (
	"strings"
	"testing"
)

// entry returns a module whose threads, 32 in a workgroup, execute lines. %d0 and %d1 are the
// addresses of two buffers.
func entry(lines ...string) string {
	return ".visible .entry k(.param .u64 k_0, .param .u64 k_1)\n.maxntid 32, 1, 1\n{\n" +
		"\t.reg .b32 %r<9>;\n\t.reg .pred %p<9>;\n\t.reg .b64 %d<9>;\n\t.shared .align 16 .b8 smem[64];\n" +
		"\tld.param.u64 %d0, [k_0];\n\tld.param.u64 %d1, [k_1];\n\tmov.u32 %r0, %tid.x;\n" +
		"\t" + strings.Join(lines, "\n\t") + "\n\tret;\n}\n"
}

func TestRun(t *testing.T) {
	// Threads below 5 add 1, others take another path; all meet again.
	text := entry("setp.lt.u32 %p0, %r0, 5;", "mov.u32 %r1, 7;", "@%p0 bra L1;", "mov.u32 %r1, 9;", "L1:",
		"bar.sync 0;", "mad.wide.u32 %d2, %r0, 4, %d1;", "st.global.b32 [%d2], %r1;")
	out := make([]byte, 128)
	if err := Run(text, [3]int{1, 1, 1}, [][]byte{nil, out}, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 32 {
		want := byte(9)
		if i < 5 {
			want = 7
		}
		if out[4*i] != want {
			t.Errorf("thread %d writes %d, want %d", i, out[4*i], want)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown instruction": {entry("brev.b32 %r1, %r0;"), "unknown instruction"},
		"unknown register":    {entry("mov.u32 %r9, %r0;"), "unknown operand %r9"},
		"unknown label":       {entry("bra L7;"), "no such label"},
		"no semicolon":        {entry("mov.u32 %r1, %r0"), "no instruction"},
		"beyond a buffer": {entry("mad.wide.u32 %d2, %r0, 4, %d1;", "st.global.b32 [%d2+4], %r0;"),
			"offset 128 of 128 bytes of global memory"},
		"unaligned":      {entry("st.global.b32 [%d1+2], %r0;"), "offset 2"},
		"not an address": {entry("ld.global.b32 %r1, [%d2];"), "no buffer"},
		"shared":         {entry("mov.u32 %r1, 64;", "st.shared.b32 [%r1], %r0;"), "64 bytes of shared"},
		"divergent end":  {entry("setp.lt.u32 %p0, %r0, 5;", "@%p0 bra L1;", "bar.sync 0;", "L1:"), "27 of 32 threads"},
		"unaligned copy": {entry("cp.async.cg.shared.global [%r0+0], [%d1], 16;"), "offset 1"},
		"missing push": {strings.Replace(entry(), ".param .u64 k_1", ".param .u64 k_1, .param .u32 k_2", 1),
			"push words"},
		"missing address":   {strings.Replace(entry(), ".param .u64 k_1", ".param .u32 k_1", 1), "push words"},
		"no entry":          {"", "no entry"},
		"no size":           {"k()\n{\n}", "no .maxntid"},
		"size not a number": {"k()\n.maxntid x, 1, 1\n{\n}", "invalid syntax"},
	} {
		err := Run(c.text, [3]int{1, 1, 1}, [][]byte{make([]byte, 128), make([]byte, 128)}, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}
