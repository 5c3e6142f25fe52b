package pack

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"sandwich/microkernel/qtype"
)

// TestBlocks packs random bytes of every quantized type, and of two that no file has, by words and
// by the definition of panels: all numbers of columns, a cut along k, into what was there before.
func TestBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 3))
	for _, d := range described(t) {
		t.Run(d.Name, func(t *testing.T) {
			p := For(d)
			for columns := 1; columns <= qtype.PanelWidth; columns++ {
				blocks, cut := 1+rng.IntN(1+bufferBytes/d.PanelBytes()), rng.IntN(3)
				stride := (cut + blocks + rng.IntN(2)) * d.Bytes
				src := make([]byte, columns*stride)
				for i := range src {
					src[i] = byte(rng.Uint32())
				}
				src = src[cut*d.Bytes : len(src)-stride+(cut+blocks)*d.Bytes]
				got := make([]byte, blocks*d.PanelBytes())
				want := make([]byte, len(got))
				for i := range got {
					got[i] = 0xA5
				}
				p.Panel(got, src, stride, columns, blocks*d.Block)
				define(d, want, src, stride, columns, blocks*d.Block)
				if !bytes.Equal(got, want) {
					at := 0
					for got[at] == want[at] {
						at++
					}
					t.Fatalf("%d columns of %d blocks: byte %d of a block of %d is %#x, want %#x", columns, blocks,
						at%d.PanelBytes(), d.PanelBytes(), got[at], want[at])
				}
			}
		})
	}
}

// described returns the quantized types, and types for this test only: with parity bits and shared
// bits next to each other in a file, and long blocks of them.
func described(t *testing.T) (list []*qtype.Desc) {
	for _, id := range qtype.All() {
		if id.Quantized() {
			list = append(list, id.Desc())
		}
	}
	parity, shared, long := *qtype.IQ2_XXS.Desc(), *qtype.IQ1_M.Desc(), *qtype.Q6_K.Desc()
	parity.Name, parity.Raw = "parity", nil
	parity.Fields = []qtype.BitField{{At: 0, Bits: 2, Run: 8}, {At: 10, Bits: 1, Run: 1}}
	shared.Name, shared.Raw = "shared", nil
	shared.Fields = []qtype.BitField{{At: 0, Bits: 2, Run: 1}, {At: 10, Bits: 1, Run: 1, Share: 4}}
	shared.Block, shared.Bytes = 128, 56
	long.Name, long.Block, long.Bytes, long.BlockScales = "long", 1024, 816, []int{814}
	long.Fields = []qtype.BitField{{At: 0, Bits: 4, Run: 16}, {At: 520, Bits: 2, Run: 128}}
	long.SubRaw.Get = func(p []byte, n int) (a, b uint8) { return p[n%16], p[n%8] }
	for i, d := range []qtype.Desc{parity, shared, long} {
		id := qtype.Type(240 + i)
		if !id.Known() {
			if err := qtype.Add(id, d); err != nil {
				t.Fatal(err)
			}
			list = append(list, id.Desc())
		}
	}
	return list
}

// define packs as qtype describes panels, one number at a time.
func define(d *qtype.Desc, panel, src []byte, rowStride, columns, k int) {
	size := d.PanelBytes()
	for b := range k / d.Block {
		block := panel[b*size:][:size]
		for c := range columns {
			var t qtype.SubBlock
			raw := src[c*rowStride+b*d.Bytes:][:d.Bytes]
			for n := range d.SubBlocks() {
				d.Read(&t, raw, n)
				defineSubBlock(d, block[d.HeadBytes()+n*d.SubBlockBytes():][:d.SubBlockBytes()], c, &t)
			}
			for h := range d.BlockScales {
				binary.LittleEndian.PutUint16(block[2*(qtype.PanelWidth*h+c):], t.BlockScales[h])
			}
		}
	}
}

// defineSubBlock writes the scales and the planes of one sub-block of column c.
func defineSubBlock(d *qtype.Desc, sub []byte, c int, t *qtype.SubBlock) {
	for i := range d.SubBytes() / qtype.PanelWidth {
		sub[qtype.PanelWidth*i+c] = t.Subs[i]
	}
	if d.Subs == qtype.OddSubs {
		sub[c] = t.Subs[0]>>1 | t.Subs[1]>>1<<4
	}
	for i := range d.Fields {
		f, low := &d.Fields[i], d.Low(i)
		for k, u := range t.U {
			at, bit := d.Place(k/4, i)
			x := u >> low & (1<<f.Bits - 1) << bit
			switch {
			case f.Share == 0:
				sub[at+4*c+k%4] |= x
			case k%4 == 0:
				sub[at+c] |= x
			}
		}
		if i > 0 && d.Subs == qtype.ParitySubs {
			at, _ := d.Place(0, i)
			word := sub[at+4*c:][:4]
			s := uint32(t.Subs[0] >> 1)
			binary.LittleEndian.PutUint32(word, binary.LittleEndian.Uint32(word)&qtype.SignBits|
				s&1<<25|s&2<<26|s&4<<27|s&8<<28)
		}
	}
}
