package kernels

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen/interp"
	"sandwich/microkernel/qtype"
)

func TestNorm(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 0))
	vec := microkernel.RefVec()
	for _, o := range []Norm{
		{Norm: true, Float: true}, {Add: true, Norm: true, Float: true},
		{Add: true, Norm: true, Float: true, Path: microkernel.ComputeInt8},
		{Add: true, Norm: true, Path: microkernel.ComputeInt8K},
		{Norm: true, Path: microkernel.ComputeInt8}, {Norm: true, Float: true, Path: microkernel.ComputeInt8},
		{Norm: true, Path: microkernel.ComputeInt8Superblock},
		{Norm: true, Path: microkernel.ComputeInt8K}, {Norm: true, Float: true, Path: microkernel.ComputeInt8K},
		{Path: microkernel.ComputeInt8}, {Path: microkernel.ComputeInt8Superblock}, {Path: microkernel.ComputeInt8K},
	} {
		for _, rows := range []int{1, 3, 9} {
			n := 32 * (1 + r.IntN(80))
			if o.Path == microkernel.ComputeInt8Superblock || o.Path == microkernel.ComputeInt8K {
				n = 256 * (1 + r.IntN(10))
			} else if o.Path == microkernel.ComputeF32 {
				n = 1 + r.IntN(300)
			}
			if rows == 1 && o.Add { // more than a tile
				n = (4096/256 + 1) * 256
			}
			o = o.For(n)
			if r.IntN(3) == 0 {
				o.Words = 1 << r.IntN(3)
			}
			const eps = float32(1e-5)
			xRow, outRow := n+4*r.IntN(3), n+4*r.IntN(3)
			if o.Path == microkernel.ComputeF32 {
				xRow, outRow = n+r.IntN(3), n+r.IntN(3)
			}
			qRow := (o.Path.ActRowBytes(n) + 4*r.IntN(3)) / 4
			x, y, weight := randomFloats(r, rows*xRow), randomFloats(r, rows*outRow), randomFloats(r, n)
			spoil(floats(x), n)
			wantX := bytes.Clone(x)
			if o.Add {
				vec.AddRows(&floats(wantX)[0], xRow, &floats(y)[0], outRow, rows, n)
			}
			out, quantized := words(rows*outRow), words(rows*qRow)
			wantOut, wantQ := bytes.Clone(out), bytes.Clone(quantized)
			for i := range rows {
				h := make([]float32, n)
				copy(h, floats(wantX)[i*xRow:])
				if o.Norm {
					vec.RMSNorm(&h[0], &floats(wantX)[i*xRow], &floats(weight)[0], n, eps)
				}
				copy(floats(wantOut)[i*outRow:], h)
				vec.QuantizeRow(o.Path, &h[0], n, unsafe.Pointer(&wantQ[4*i*qRow]))
			}
			k, err := o.Kernel()
			c := call{kernel: build(t, k, err), grid: o.Grid(n, rows), buffers: [][]byte{x},
				push: pushed(n, xRow, outRow, qRow, eps)}
			if o.Add {
				c.buffers, c.push = append(c.buffers, y), pushed(n, xRow, outRow, outRow, qRow, eps)
			}
			if o.Norm {
				c.buffers = append(c.buffers, weight)
			}
			if o.Float {
				c.buffers = append(c.buffers, out)
			}
			if o.Path != microkernel.ComputeF32 {
				c.buffers = append(c.buffers, quantized)
			}
			if o.Add {
				c.check(t, "x", wantX)
			}
			if o.Float {
				c.check(t, "out", wantOut)
			}
			if o.Path != microkernel.ComputeF32 {
				c.check(t, "quantized", wantQ)
			}
		}
	}
}

// spoil puts odd values into the last row of x.
func spoil(x []float32, n int) {
	last := x[len(x)-n:]
	for i, v := range []float32{0, 1e-38, float32(math.Inf(1)), float32(math.NaN()), 3e38} {
		if i < len(last) && n%5 == i {
			last[i] = v
		}
	}
	if n > 64 { // blocks of zeros, and of values too small to quantize
		clear(x[:32])
		for i := range x[32:64] {
			x[32+i] = 1e-39
		}
	}
}

func TestNormRefuses(t *testing.T) {
	bf16 := Norm{Norm: true, Float: true, Path: microkernel.ComputeBF16, Words: 1}
	for _, o := range []Norm{{Words: 1}, {Norm: true, Words: 1}, {Float: true, Words: 1},
		{Norm: true, Float: true, Words: 3},
		{Add: true, Path: microkernel.ComputeInt8, Words: 1}, bf16} {
		if k, err := o.Kernel(); err == nil {
			t.Errorf("%+v gives %s, want an error", o, k.Name)
		}
	}
}

func TestRows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	for _, n := range []int{1, 64, 65, 130} {
		const rows = 3
		dst, src := randomFloats(r, rows*(n+1)), randomFloats(r, rows*(n+2))
		want := bytes.Clone(dst)
		microkernel.RefVec().AddRows(&floats(want)[0], n+1, &floats(src)[0], n+2, rows, n)
		k, err := AddRows()
		call{build(t, k, err), RowGrid(n, rows), [][]byte{dst, src}, pushed(n, n+1, n+2)}.check(t, "dst", want)

		index := words(2)
		copy(index, []byte{2, 0, 0, 0, 0, 0, 0, 0})
		dst = words(2 * (n + 1))
		want = bytes.Clone(dst)
		for i, from := range []int{2, 0} {
			for j := range n {
				floats(want)[i*(n+1)+j] = floats(src)[from*(n+2)+j] * 1.5
			}
		}
		k, err = GatherRows()
		call{build(t, k, err), RowGrid(n, 2), [][]byte{dst, src, index},
			pushed(n, n+1, n+2, float32(1.5))}.check(t, "dst", want)

		dst = words(n + 3)
		want = bytes.Clone(dst)
		copy(want[8:], src[4:4+4*n])
		k, err = Copy()
		call{build(t, k, err), CopyGrid(n), [][]byte{dst, src}, pushed(n, 2, 1)}.check(t, "dst", want)
	}
}

func TestEmbed(t *testing.T) {
	for _, typ := range gemmTypes {
		r := rand.New(rand.NewPCG(4, uint64(typ)))
		n := typ.Block() * (1 + r.IntN(2))
		if typ.Block() == 1 {
			n = 2 * (1 + r.IntN(60)) // rows of a file are whole words
		}
		const vocab, rows, scale = 37, 4, float32(3.25)
		raw, panels, layout := packed(t, r, typ, vocab, n)
		raw = append(raw, make([]byte, -len(raw)&15)...)
		tokens, outRow := words(rows), n+1
		want := words(rows * outRow)
		for i := range rows {
			token := r.IntN(vocab)
			binary.LittleEndian.PutUint32(tokens[4*i:], uint32(token))
			x := make([]float32, n)
			if err := microkernel.Unpack(x, panels, layout, token, 0, n); err != nil {
				t.Fatal(err)
			}
			for j := range x {
				floats(want)[i*outRow+j] = x[j] * scale
			}
		}
		for _, isPacked := range []bool{true, false} {
			table := raw
			if isPacked {
				table = panels
			}
			k, err := Embed{Type: typ, Packed: isPacked}.Kernel()
			call{build(t, k, err), RowGrid(n, rows), [][]byte{table, tokens, words(rows * outRow)},
				pushed(n, layout.PanelStride()/4, outRow, scale)}.check(t, "out", want)
		}
	}
	for _, typ := range []qtype.Type{qtype.IQ4_XS, qtype.Q3_K} {
		if k, err := (Embed{Type: typ}).Kernel(); err == nil {
			t.Error(fmt.Sprint(typ, " gives ", k.Name, ", want an error"))
		}
	}
}

// TestNormInPlace checks that rows may be normalized in place.
func TestNormInPlace(t *testing.T) {
	const rows, n, eps = 2, 100, float32(1e-5)
	r := rand.New(rand.NewPCG(8, 0))
	x, weight := randomFloats(r, rows*n), randomFloats(r, n)
	want := bytes.Clone(x)
	microkernel.RefVec().RMSNormRows(&floats(want)[0], n, &floats(x)[0], n, rows, &floats(weight)[0], n, eps)
	o := Norm{Norm: true, Float: true}.For(n)
	k, err := o.Kernel()
	build(t, k, err)
	if err := interp.Run(k, o.Grid(n, rows), [][]byte{x, weight, x}, pushed(n, n, n, 0, eps)); err != nil {
		t.Fatal(err)
	}
	compare(t, k.Name, x, want)
}
