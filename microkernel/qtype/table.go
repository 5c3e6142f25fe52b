package qtype

func init() {
	for _, r := range rows {
		if err := Add(r.id, r.Desc); err != nil {
			panic(err)
		}
	}
}

// kvalues are the sixteen values that an iq4_nl number stands for.
var kvalues = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// Bits of numbers as the two families of types store them: k and k+16 in the nibbles of sixteen
// bytes with fifth bits in a word, and runs of 32 or 64, one behind the other in the bits of as
// many bytes.
func nibbles(at int) Piece         { return Piece{At: at, Bits: 4, Run: 16} }
func word(at int) Piece            { return Piece{At: at, Bits: 1, Run: 1} }
func runs(at, bits, run int) Piece { return Piece{At: at, Bits: bits, Run: run} }

// The scales of the K types.
var (
	q2Scales = SubLayout{At: 0, Bytes: 16, Most: 15, Get: getBytes, Put: putBytes}
	q3Scales = SubLayout{At: 96, Bytes: 12, Most: 32, Get: getSixBits, Put: putSixBits}
	q4Scales = SubLayout{At: 4, Bytes: 12, Most: 63, Get: getSixBitPairs, Put: putSixBitPairs}
	q6Scales = SubLayout{At: 192, Bytes: 16, Most: 128, Get: getBytes, Put: putBytes}
)

// rows are the types, a row each.
var rows = []struct {
	id Type
	Desc
}{
	{F32, Desc{Name: "f32", FileType: 0, Block: 1, Bytes: 4, Float: Single}},
	{F16, Desc{Name: "f16", FileType: 1, Block: 1, Bytes: 2, Float: Half}},
	{BF16, Desc{Name: "bf16", FileType: 32, Block: 1, Bytes: 2, Float: Brain}},

	{Q8_0, Desc{Name: "q8_0", FileType: 7, Block: 32, Bytes: 34,
		Halves: []int{0}, Pieces: []Piece{runs(2, 8, 32)}, ZeroPoint: 128, Signed: true}},
	{Q4_0, Desc{Name: "q4_0", FileType: 2, Block: 32, Bytes: 18, Halves: []int{0}, Pieces: []Piece{nibbles(2)}, ZeroPoint: 8}},
	{Q4_1, Desc{Name: "q4_1", FileType: 3, Block: 32, Bytes: 20, Halves: []int{0, 2}, Pieces: []Piece{nibbles(4)}}},
	{Q5_0, Desc{Name: "q5_0", FileType: 8, Block: 32, Bytes: 22,
		Halves: []int{0}, Pieces: []Piece{nibbles(6), word(2)}, ZeroPoint: 16}},
	{Q5_1, Desc{Name: "q5_1", FileType: 9, Block: 32, Bytes: 24, Halves: []int{0, 2}, Pieces: []Piece{nibbles(8), word(4)}}},
	{IQ4_NL, Desc{Name: "iq4_nl", FileType: 25, Block: 32, Bytes: 18, Halves: []int{0}, Pieces: []Piece{nibbles(2)}, Codebook: &kvalues}},

	{Q2_K, Desc{Name: "q2_k", FileType: 10, Block: 256, Bytes: 84, Fallback: Q4_0,
		Halves: []int{80, 82}, Subs: NibbleSubs, SubRaw: q2Scales, Pieces: []Piece{runs(16, 2, 32)}}},
	{Q3_K, Desc{Name: "q3_k", FileType: 12, Block: 256, Bytes: 110, Fallback: Q4_0,
		Halves: []int{108}, Subs: SignedSubs, SubRaw: q3Scales, Pieces: []Piece{runs(32, 2, 32), runs(0, 1, 32)}, ZeroPoint: 4}},
	{Q4_K, Desc{Name: "q4_k", FileType: 14, Block: 256, Bytes: 144, Fallback: Q5_0,
		Halves: []int{0, 2}, Subs: PairSubs, SubRaw: q4Scales, Pieces: []Piece{runs(16, 4, 32)}}},
	{Q5_K, Desc{Name: "q5_k", FileType: 16, Block: 256, Bytes: 176, Fallback: Q5_1,
		Halves: []int{0, 2}, Subs: PairSubs, SubRaw: q4Scales, Pieces: []Piece{runs(48, 4, 32), runs(16, 1, 32)}}},
	{Q6_K, Desc{Name: "q6_k", FileType: 18, Block: 256, Bytes: 210, Fallback: Q8_0,
		Halves: []int{208}, Subs: SignedSubs, SubRaw: q6Scales, Pieces: []Piece{runs(0, 4, 64), runs(128, 2, 32)}, ZeroPoint: 32}},
}
