package bench

import "testing"

// TestSharesText checks that shares are listed in descending order, and equal ones by name.
func TestSharesText(t *testing.T) {
	shares := map[string]float64{"norm": 0.2, "matmul": 0.5, "attention": 0.2, "rotate": 0.09, "embed": 0.005}
	const want = "matmul 50 %, attention 20 %, norm 20 %, rotate 9 %"
	for range 10 {
		if got := sharesText(shares); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}
