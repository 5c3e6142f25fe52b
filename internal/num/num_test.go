package num

import (
	"math"
	"slices"
	"testing"
)

func TestRounding(t *testing.T) {
	for _, c := range []struct{ n, unit, div, up int }{{0, 4, 0, 0}, {1, 4, 1, 4}, {4, 4, 1, 4}, {5, 4, 2, 8}, {7,
		1, 7, 7}} {
		if got := CeilDiv(c.n, c.unit); got != c.div {
			t.Errorf("CeilDiv(%d, %d) = %d, want %d", c.n, c.unit, got, c.div)
		}
		if got := RoundUp(c.n, c.unit); got != c.up {
			t.Errorf("RoundUp(%d, %d) = %d, want %d", c.n, c.unit, got, c.up)
		}
	}
}

func TestGCD(t *testing.T) {
	for _, c := range [][3]int{{12, 18, 6}, {18, 12, 6}, {7, 3, 1}, {5, 0, 5}, {0, 5, 5}, {0, 0, 0}} {
		if got := GCD(c[0], c[1]); got != c[2] {
			t.Errorf("GCD(%d, %d) = %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

func TestMedian(t *testing.T) {
	if v := Median(nil); !math.IsNaN(v) {
		t.Errorf("median of nothing is %v, want NaN", v)
	}
	for _, c := range []struct {
		x    []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 5}, 5}} {
		before := slices.Clone(c.x)
		if got := Median(c.x); got != c.want || !slices.Equal(c.x, before) {
			t.Errorf("median of %v is %v, want %v; x is now %v", before, got, c.want, c.x)
		}
	}
}

func TestQuantile(t *testing.T) {
	var hundred []int
	for i := range 100 {
		hundred = append(hundred, i+1)
	}
	for percent := 1; percent <= 100; percent++ {
		if got := Quantile(hundred, float64(percent)/100); got != percent {
			t.Errorf("quantile %d %% of 1 to 100 is %d", percent, got)
		}
	}
	for _, c := range []struct {
		x       []float64
		q, want float64
	}{{nil, 0.5, 0}, {[]float64{3}, 0, 3}, {[]float64{3}, 1, 3}, {[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.1, 1},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.9, 9}, {[]float64{1, 2, 3}, 0.5, 2}} {
		if got := Quantile(c.x, c.q); got != c.want {
			t.Errorf("quantile %v of %v is %v, want %v", c.q, c.x, got, c.want)
		}
	}
}

func TestSignificant(t *testing.T) {
	for _, c := range []struct{ x, want float64 }{
		{0, 0}, {math.Inf(1), 0}, {math.NaN(), 0}, {12345.6, 12350}, {-0.000123456, -0.0001235}, {7, 7},
	} {
		if got := Significant(c.x); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Significant(%g) is %g, want %g", c.x, got, c.want)
		}
	}
	if got := Significant(1e-310); got != 1e-310 { // a power of ten above it overflows
		t.Errorf("Significant(1e-310) is %g", got)
	}
}
