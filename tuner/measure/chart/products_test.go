package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"sandwich/profiles"
	"sandwich/tuner/measure/kernels"
)

// TestProducts checks that the chart is well-formed XML for any names and any number of figures.
func TestProducts(t *testing.T) {
	one := kernels.ProductRow{Peer: kernels.OurName, Threads: 1, M: 7, N: 48, K: 64, GFLOPS: 3, Weights: kernels.Hot}
	odd := one
	odd.Rates = map[string]float64{`<&">`: 5}
	for name, rows := range map[string][]kernels.ProductRow{"one point": {one}, "names": {one, odd}} {
		var out strings.Builder
		if err := Products(&out, rows, kernels.NewProductCeilings(&profiles.Profile{}, "avx2")); err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(strings.NewReader(out.String()))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, out.String())
			}
		}
		if strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "Inf") {
			t.Errorf("%s: the picture has places that are no numbers", name)
		}
	}
}
