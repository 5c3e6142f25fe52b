package draw

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// latencies is a matrix of n cores in clusters of 4 in nodes of 24, with 5 % noise.
func latencies(r *rand.Rand, n int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
		for j := range m[i] {
			near := 200.0
			switch {
			case i/4 == j/4:
				near = 35
			case i/24 == j/24:
				near = 70
			}
			m[i][j] = near * (1 + 0.05*r.NormFloat64())
		}
	}
	return m
}

func TestHeat(t *testing.T) {
	small := Heat{Title: "round trip", Unit: "ns", Labels: []string{"0", "1", "2", "3"}, Values: [][]float64{
		{0, 40, 110, 110}, {40, 0, 110, 110}, {110, 110, 0, math.NaN()}, {110, 110, math.NaN(), 0},
	}}
	var text strings.Builder
	if err := small.WriteText(&text, 0); err != nil {
		t.Fatal(err)
	}
	want := `round trip
0   ··████
1 ··  ████
2 ████    
3 ████    
  ·· 40 to ██ 110 ns
`
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
	r := rand.New(rand.NewPCG(1, 2))
	large := Heat{Title: "core to core, 192 PUs <kunpeng920>", Unit: "ns", Values: latencies(r, 192)}
	for i := range 192 {
		large.Labels = append(large.Labels, fmt.Sprint(i))
	}
	var svg bytes.Buffer
	if err := large.WriteSVG(&svg); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(svg.String(), "<rect"); got != 192*192+len(ramp)+1 {
		t.Errorf("%d cells", got)
	}
	if !strings.Contains(svg.String(), "&lt;kunpeng920&gt;") {
		t.Error("the title is not escaped")
	}
	text.Reset()
	if err := large.WriteText(&text, 100); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if n := len([]rune(line)); n > 101 {
			t.Errorf("line of %d columns: %s", n, line)
		}
	}
	t.Logf("\n%s", text.String())
	if err := large.WriteSVG(failingWriter{}); err == nil {
		t.Error("a full disk went unnoticed")
	}
	if err := (Heat{Title: "none"}).WriteText(&text, 0); err != nil {
		t.Error(err)
	}
}
