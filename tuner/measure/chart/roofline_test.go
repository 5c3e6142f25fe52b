package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"sandwich/tuner/measure"
)

// TestRoofline checks that the chart is well-formed, within its frame and without NaN coordinates,
// for any names and any number of figures.
func TestRoofline(t *testing.T) {
	ceilings := []Ceiling{{"avx512/int8", 1e12, 2e10}, {"none", 0, 0}}
	one := measure.RooflineRow{Op: "gate<&up>", M: 16, FLOP: 1e9, Bytes: 1e7, Intensity: 100, Predicted: 2e-3,
		Seconds: 1e-3,
		Regime:  "compute-bound"}
	none := measure.RooflineRow{Op: "norm", M: 16, Predicted: 1e-6}
	other := one
	other.ISA, other.Seconds = "avx2", 0
	for name, rows := range map[string][]measure.RooflineRow{"nothing": nil, "one": {one}, "no memory": {none},
		"two sets": {one, other, none}} {
		var out strings.Builder
		if err := Roofline(&out, rows, ceilings); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		d := xml.NewDecoder(strings.NewReader(text))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, text)
			}
		}
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("%s: the picture has places that are no numbers", name)
		}
		if strings.Contains(text, "norm") {
			t.Errorf("%s: an op that reads no memory is on the roofline", name)
		}
		if marks := strings.Count(text, "<title>"); marks != min(2, len(rows)) && name == "two sets" {
			t.Errorf("%s: %d marks", name, marks)
		}
	}
}
