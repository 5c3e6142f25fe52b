package placement

import (
	"math"
	"slices"
	"testing"
	"time"

	"sandwich/runtime/phase"
)

func TestThrough(t *testing.T) {
	for _, c := range []struct {
		rowsA, rowsB int
		a, b         time.Duration
		of           map[int]time.Duration
	}{
		{1, 101, 100, 1100, map[int]time.Duration{1: 100, 51: 600, 101: 1100, 201: 2100}},
		{101, 1, 1100, 100, map[int]time.Duration{51: 600}},
		{8, 8, 10, 30, map[int]time.Duration{1: 30, 100: 30}},
		{1, 8, 30, 10, map[int]time.Duration{1: 30, 8: 30}},
		{10, 20, 10, 40, map[int]time.Duration{20: 60}}, // not below zero at zero rows
		{0, 0, 0, 0, map[int]time.Duration{5: 1}},
	} {
		l := Through(c.rowsA, c.a, c.rowsB, c.b)
		for rows, want := range c.of {
			if got := l.Of(rows); got != want {
				t.Errorf("Through(%d, %d, %d, %d): %d rows take %d, want %d", c.rowsA, c.a, c.rowsB, c.b, rows, got,
					want)
			}
		}
	}
	if d := (Line{Row: math.MaxFloat64}).Of(1 << 20); d <= 0 {
		t.Errorf("an overflowing prediction is %v", d)
	}
}

// TestChoose checks the choice and the predicted latency where both are easily computed by hand.
func TestChoose(t *testing.T) {
	cores := Side{{Row: 1000}, {Fixed: 1000}}
	one := Load{Requests: 1, Prompt: 100, Output: 11, Chunk: 50}
	prefill, decode := []phase.Phase{phase.Prefill}, []phase.Phase{phase.Decode}
	for _, c := range []struct {
		name    string
		load    Load
		rates   Rates
		want    []phase.Phase
		latency time.Duration
	}{
		{"equal sides", one, Rates{Cores: cores, Device: cores}, nil, 110000},
		{"a slow device", one, Rates{Cores: cores, Device: Side{{Row: 3000}, {Fixed: 3000}}}, nil, 110000},
		{"a fast device", one, Rates{Cores: cores, Device: Side{{Row: 100}, {Fixed: 100}}}, phase.All[:], 11000},
		{"fast in prompts", one, Rates{Cores: cores, Device: Side{{Row: 100}, {Fixed: 3000}}}, prefill, 20000},
		{"the same with copies", one, Rates{Cores: cores, Device: Side{{Row: 100}, {Fixed: 3000}}, ToCores: 50},
			prefill, 25000},
		{"copies that take longer", one, Rates{Cores: cores, Device: Side{{Row: 100}, {Fixed: 3000}}, ToCores: 901},
			nil, 110000},
		{"fast in decoding", one, Rates{Cores: cores, Device: Side{{Row: 3000}, {Fixed: 100}}, ToDevice: 10},
			decode, 101500},
		{"launches", one, Rates{Cores: cores, Device: Side{{Fixed: 60000, Row: 1}, {Fixed: 60000}}}, nil, 110000},
		// Both at once: 10 requests take 100000 for each prompt, decode batches run next to them.
		{"overlap", Load{Requests: 10, Prompt: 100, Output: 11, Chunk: 100}, Rates{Cores: cores, Device: cores},
			prefill, 560000},
		// One forward at a time: a decode batch of 1000 follows each of 10 prompts of 100000, so
		// that request k ends at 1010000 + 1000*(k-1).
		{"shared", Load{Requests: 1, Prompt: 100, Output: 11, Chunk: 50}, Rates{Cores: cores,
			Device: Side{{Row: 3000}, {Fixed: 100}}, ToDevice: 10, Shared: true}, decode, 101500},
		{"no overlap", Load{Requests: 10, Prompt: 100, Output: 11, Chunk: 100}, Rates{Cores: cores, Device: cores,
			Shared: true}, nil, 1014500},
		{"nothing known", Load{}, Rates{}, nil, 1},
	} {
		list := Choose(c.load, c.rates)
		if got := list[0]; !slices.Equal(got.Device, c.want) || got.Latency != c.latency {
			t.Errorf("%s: %v in %d, want %v in %d", c.name, got.Device, got.Latency, c.want, c.latency)
		}
		if len(list) != 4 || !slices.IsSortedFunc(list, func(a, b Estimate) int { return int(a.Latency - b.Latency) }) {
			t.Errorf("%s: %v is not a sorted list of all placements", c.name, list)
		}
	}
}
