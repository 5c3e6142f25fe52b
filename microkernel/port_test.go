package microkernel

import (
	"testing"

	"sandwich/microkernel/internal/code"
	"sandwich/microkernel/internal/jit"
)

// TestInstructionsByHand compares the instruction counts of some kernels with counts made by hand.
func TestInstructionsByHand(t *testing.T) {
	for text, want := range map[string]InstructionCounts{
		// each of 4 k: two vectors of W; 14 rows, each broadcast for two multiply-adds
		"avx512/f32/f32/14x32/ku4/load": {code.Load: 4 * 2, code.LoadWord: 4 * 14, code.Multiply: 4 * 28},
		// the same with the broadcasts in the multiply-adds
		"avx512/f32/f32/6x32/ku2/embed": {code.Load: 2 * 2, code.LoadWord: 2 * 12, code.Multiply: 2 * 12},
		// 8 groups of four k: two vectors, six broadcasts, twelve dot products; then two scales of
		// columns as half precision, six biases, and for each accumulator conversion, product of
		// scales, FMA
		"avx512/int8/q8_0/6x32/ku32/load/vnni": {code.Load: 8*2 + 2, code.LoadWord: 8*6 + 6 + 12, code.Dot: 8 * 12,
			code.Convert: 2 + 12, code.Multiply: 12 + 12},
		// 16 blocks of activations packed; tiles of 16 rows of them and 8 of weights; the sums of
		// 16 rows to memory and back
		"avx512/int8/q8_0/16x16/ku32/load/amx": {code.Load: 16 + 16 + 8 + 16 + 1, code.LoadWord: 16,
			code.Store: 16 + 16,
			code.Tile:  16, code.Convert: 16 + 1, code.Multiply: 16 + 16},
		// two panels of half the rows, which are packed once
		"avx512/int8/q8_0/8x32/ku32/load/amx": {code.Load: 8 + 2*(8+8+8+1), code.LoadWord: 2 * 8, code.Store: 8 + 2*8,
			code.Tile: 2 * 8, code.Convert: 2 * (8 + 1), code.Multiply: 2 * (8 + 8)},
		// four k: a lane of one vector of a row for each of eight vectors of W
		"neon/f32/f32/1x32/ku4/lane": {code.Load: 1 + 4*8, code.Multiply: 4 * 8},
	} {
		s, err := ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Instructions(s)
		got[code.Other] = 0
		if err != nil || got != want {
			t.Errorf("%s: %v, want %v: %v", text, got, want, err)
		}
	}
	if _, err := Instructions(Spec{}); err == nil {
		t.Error("a spec without a size was counted")
	}
}

// TestInstructionsOfBlocks checks that the loop over the sub-blocks of a block counts eight times
// per iteration.
func TestInstructionsOfBlocks(t *testing.T) {
	s := Spec{ISA: AVX512, Compute: ComputeInt8, B: Q4_K, MR: 6, NR: 32, KU: 32, Dot: VNNI}
	got, err := Instructions(s)
	if err != nil || got[code.Dot] != 8*8*12 {
		t.Errorf("%v dot products, %v", got[code.Dot], err)
	}
	if tiles, err := Instructions(amxSpec(Q4_K, 16)); err != nil || tiles[code.Tile] != 8*16 ||
		tiles[code.Multiply] != 8*(1+16+16+1+16) { // scales, products of them, FMAs, offsets and theirs
		t.Errorf("of tiles %v, %v", tiles, err)
	}
	spread, err := Instructions(s.WithSpread())
	if err != nil || spread[code.Load] != got[code.Load] || spread[code.LoadWord] != got[code.LoadWord] {
		t.Errorf("a spread prefetch, which seldom asks, makes %v of %v: %v", spread, got, err)
	}
}

func TestPortsRun(t *testing.T) {
	if jit.Race {
		t.Skip("race builds run plain Go; run without -race")
	}
	for _, isa := range Host().ISAs() {
		for c := range InstructionClasses {
			p, err := NewPort(isa, Host(), c)
			if err != nil {
				continue
			}
			if p.Run(10); p.Ops <= 0 {
				t.Errorf("%s: %s does %d operations", isa, c, p.Ops)
			}
		}
		if isa.Generates() {
			if _, err := NewPort(isa, Host(), code.Multiply, code.Load, code.Shuffle); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := NewPort(AVX512, HasAVX2|HasAVX512, code.Tile); err == nil {
		t.Error("a CPU without a matrix unit has a rate of tiles")
	}
	if _, err := NewPort(AVX512, Host(), code.Multiply, code.Other); err == nil {
		t.Error("a mix with what has no port has a rate")
	}
}
