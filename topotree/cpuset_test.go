package topotree

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sandwich/internal/message"
)

func randomSet(r *rand.Rand, limit int) CPUSet {
	var cpus []int
	for range r.IntN(40) {
		cpus = append(cpus, r.IntN(limit))
	}
	return NewCPUSet(cpus...)
}

// TestCPUSetAgainstMap compares every operation with a plain map of numbers.
func TestCPUSetAgainstMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	in := func(s CPUSet) map[int]bool {
		m := map[int]bool{}
		for _, c := range s.Slice() {
			m[c] = true
		}
		return m
	}
	for range 500 {
		a, b := randomSet(r, 200), randomSet(r, 200)
		ma, mb := in(a), in(b)
		union, both, rest := a.Union(b), a.Intersect(b), a.Minus(b)
		inside, touches := true, false
		for c := range 260 {
			if union.Contains(c) != (ma[c] || mb[c]) || both.Contains(c) != (ma[c] && mb[c]) ||
				rest.Contains(c) != (ma[c] && !mb[c]) {
				t.Fatalf("a=%s b=%s: wrong at %d", a, b, c)
			}
			inside = inside && (!ma[c] || mb[c])
			touches = touches || ma[c] && mb[c]
		}
		if a.In(b) != inside || a.Intersects(b) != touches || a.Count() != len(ma) ||
			a.Equal(b) != (a.Key() == b.Key()) {
			t.Fatalf("a=%s b=%s: wrong relation", a, b)
		}
		if !both.Union(rest).Equal(a) {
			t.Fatalf("a=%s b=%s: the parts do not make the whole", a, b)
		}
	}
}

func TestCPUSetText(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		s := randomSet(r, MaxPUs)
		back, err := ParseCPUSet(s.String())
		if err != nil || !back.Equal(s) {
			t.Fatalf("%s came back as %s: %v", s, back, err)
		}
	}
	for text, want := range map[string]string{
		"0-3,8": "0-3,8", "8,0-3\n\x00": "0-3,8", " ": "", "0-31:2/8": "0-1,8-9,16-17,24-25", "3,3,3": "3",
		"16383": "16383",
	} {
		if s, err := ParseCPUSet(text); err != nil || s.String() != want {
			t.Errorf("list %q = %s, %v; want %s", text, s, err, want)
		}
	}
	for text, want := range map[string]string{
		"ff": "0-7", "0x00010000,0x0": "48", "0x3ffff000,,0x03ffff00": "8-25,76-93", "00000000,00000001\n\n": "0",
		"ffffffffffffffff": "0-63", strings.Repeat("0,", 127) + "80000000": "31", "1" + strings.Repeat(",0",
			127): "4064",
	} {
		if s, err := ParseCPUMask(text); err != nil || s.String() != want {
			t.Errorf("mask %q = %s, %v; want %s", text, s, err, want)
		}
	}
	for _, text := range []string{"a", "3-", "3-1", "-1", "99999999999999999999", "16384", "0-3:0/0", "0-3:4/2",
		"0-9:3", strings.Repeat("1,", maxSetText)} {
		if s, err := ParseCPUSet(text); err == nil {
			t.Errorf("list %q was taken as %s", message.Clip(text, 60), s)
		}
	}
	for _, text := range []string{"x", "0xf...f", "123456789,0", "1" + strings.Repeat(",0", 600), "-1"} {
		if s, err := ParseCPUMask(text); err == nil {
			t.Errorf("mask %q was taken as %s", message.Clip(text, 60), s)
		}
	}
}

func TestCPURange(t *testing.T) {
	for _, c := range [][2]int{{0, 0}, {0, 63}, {63, 64}, {5, 200}, {64, 127}, {3, 2}} {
		var want []int
		for i := c[0]; i <= c[1]; i++ {
			want = append(want, i)
		}
		if got := CPURange(c[0], c[1]); !slices.Equal(got.Slice(), append([]int{}, want...)) {
			t.Errorf("%v = %s", c, got)
		}
	}
	if CPURange(0, 1<<40).Last() != MaxPUs-1 {
		t.Error("not clipped")
	}
}
