package kernels

import (
	"slices"
	"strings"
	"testing"

	"sandwich/profiles"
	"sandwich/tuner/measure/spread"
)

// TestMedianInterval checks that the interval of the median needs six values and excludes one value
// at each end from nine values on (2 * 10/512 is below 5 %).
func TestMedianInterval(t *testing.T) {
	values := []float64{9, 3, 7, 1, 5, 2, 8, 6, 4, 10, 11, 12}
	for n, want := range map[int][2]float64{0: {}, 5: {}, 6: {1, 9}, 8: {1, 9}, 9: {2, 8}, 12: {3, 10}} {
		low, high := spread.MedianInterval(values[:n])
		if low != want[0] || high != want[1] {
			t.Errorf("%d values: %v to %v, want %v", n, low, high, want)
		}
	}
}

// TestParseProduct checks that errors name the column.
func TestParseProduct(t *testing.T) {
	const line = "someblas,1,16,64,128,12.5,cold,0.001,0.001,0.002,5,1"
	if r, err := parseProduct(strings.Split(line, ",")); err != nil || r.Peer != "someblas" ||
		r.cell() != (productCell{1, 16, 64, 128, Cold}) || r.GFLOPS != 12.5 || r.Reps != 5 {
		t.Fatalf("%+v, %v", r, err)
	}
	for column, bad := range map[string][]string{
		"peer": {"", "a\x1b[31m", strings.Repeat("x", 65)}, "threads": {"0", "-1", "1.5"}, "M": {"0", "x",
			"99999999999999999999"}, "N": {"2147483648"}, "K": {""},
		"gflops": {"NaN", "-1", "0", "Inf", "+Inf", "1e400"}, "wmode": {"warm", ""}, "med_s": {"NaN", "-1"},
		"min_s": {"Inf"}, "max_s": {"x"}, "reps": {"-1"}, "packed": {"yes"},
	} {
		i := slices.Index(strings.Split(ProductHeader, ","), column)
		for _, value := range bad {
			record := strings.Split(line, ",")
			record[i] = value
			if _, err := parseProduct(record); err == nil || !strings.Contains(err.Error(), column+" ") {
				t.Errorf("%s %q: %v", column, value, err)
			}
		}
	}
}

// TestCeilingsFollowTheRun checks that the ceiling of cold products follows the fastest product of
// one row if it exceeds the calibrated bandwidth, and that times are relative to those of one row.
func TestCeilingsFollowTheRun(t *testing.T) {
	ceiling := func(kind, isa, typ, unit string, v float64) profiles.Ceiling {
		return profiles.Ceiling{Kind: kind, ISA: isa, Type: typ, PUs: 1, Figure: profiles.NewFigure(unit, []float64{v})}
	}
	f32 := ceiling(profiles.Compute, "avx512", "f32", "FLOP/s", 100e9)
	ceilings := NewProductCeilings(&profiles.Profile{Ceilings: []profiles.Ceiling{f32}}, "avx512")
	row := func(m int, rate float64) ProductRow {
		return ProductRow{Peer: OurName, Threads: 1, M: m, N: 64, K: 128, GFLOPS: rate, Weights: Cold, Type: "f32",
			Compute: "f32"}
	}
	rows := []ProductRow{row(1, 5), row(8, 32), row(64, 90)} // 5 GFLOP/s with one row of float32 are 10 GB/s
	ceilings.Fill(rows)
	overOneRow(rows)
	for i, want := range []struct{ ceiling, rate, one float64 }{{5, 10, 0}, {40, 8, 1.25}, {100, 90.0 / 32,
		64 * 5 / 90.0}} {
		if r := rows[i]; r.Ceiling != want.ceiling || r.Rate != want.rate || r.OneRow != want.one {
			t.Errorf("M %d: ceiling %v, %v GB/s, %v times one row, want %+v", r.M, r.Ceiling, r.Rate, r.OneRow, want)
		}
	}
}
