package qtype

func init() {
	for _, r := range rows {
		if err := Add(r.id, r.Desc); err != nil {
			panic(err)
		}
	}
}

// kvalues are the values of the sixteen codes of iq4_nl.
var kvalues = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// The bit fields of the two families of types: k and k+16 in the nibbles of sixteen bytes with
// fifth bits in a word, and runs of 32 or 64 that share as many bytes.
func nibbles(at int) BitField         { return BitField{At: at, Bits: 4, Run: 16} }
func word(at int) BitField            { return BitField{At: at, Bits: 1, Run: 1} }
func runs(at, bits, run int) BitField { return BitField{At: at, Bits: bits, Run: run} }
func plane(bits int) BitField         { return BitField{Bits: bits} } // of a type that has a RawForm

// The scales of the K types.
var (
	q2Scales = SubLayout{At: 0, Bytes: 16, Most: 15, Get: getBytes, Put: putBytes}
	q3Scales = SubLayout{At: 96, Bytes: 12, Most: 32, Get: getSixBits, Put: putSixBits}
	q4Scales = SubLayout{At: 4, Bytes: 12, Most: 63, Get: getSixBitPairs, Put: putSixBitPairs}
	q6Scales = SubLayout{At: 192, Bytes: 16, Most: 128, Get: getBytes, Put: putBytes}

	iq4Scales = SubLayout{At: 2, Bytes: 6, Most: 32, Negative: true, Get: getSplitSix, Put: putSplitSix}
)

// rows are the types, one row each.
var rows = []struct {
	id Type
	Desc
}{
	{F32, Desc{Name: "f32", FileType: 0, Block: 1, Bytes: 4, Float: Single}},
	{F16, Desc{Name: "f16", FileType: 1, Block: 1, Bytes: 2, Float: Half}},
	{BF16, Desc{Name: "bf16", FileType: 32, Block: 1, Bytes: 2, Float: Brain}},

	{Q8_0, Desc{Name: "q8_0", FileType: 7, Block: 32, Bytes: 34,
		BlockScales: []int{0}, Fields: []BitField{runs(2, 8, 32)}, ZeroPoint: 128, Signed: true}},
	{Q4_0, Desc{Name: "q4_0", FileType: 2, Block: 32, Bytes: 18,
		BlockScales: []int{0}, Fields: []BitField{nibbles(2)}, ZeroPoint: 8}},
	{Q4_1, Desc{Name: "q4_1", FileType: 3, Block: 32, Bytes: 20, BlockScales: []int{0, 2},
		Fields: []BitField{nibbles(4)}}},
	{Q5_0, Desc{Name: "q5_0", FileType: 8, Block: 32, Bytes: 22,
		BlockScales: []int{0}, Fields: []BitField{nibbles(6), word(2)}, ZeroPoint: 16}},
	{Q5_1, Desc{Name: "q5_1", FileType: 9, Block: 32, Bytes: 24,
		BlockScales: []int{0, 2}, Fields: []BitField{nibbles(8), word(4)}}},
	{IQ4_NL, Desc{Name: "iq4_nl", FileType: 25, Block: 32, Bytes: 18,
		BlockScales: []int{0}, Fields: []BitField{nibbles(2)}, Codebook: &kvalues}},

	{Q2_K, Desc{Name: "q2_k", FileType: 10, Block: 256, Bytes: 84, Fallback: Q4_0,
		BlockScales: []int{80, 82}, Subs: NibbleSubs, SubK: 16, SubRaw: q2Scales, Fields: []BitField{runs(16, 2, 32)}}},
	{Q3_K, Desc{Name: "q3_k", FileType: 12, Block: 256, Bytes: 110, Fallback: Q4_0,
		BlockScales: []int{108}, Subs: SignedSubs, SubK: 16, SubRaw: q3Scales,
		Fields: []BitField{runs(32, 2, 32), runs(0, 1, 32)}, ZeroPoint: 4}},
	{Q4_K, Desc{Name: "q4_k", FileType: 14, Block: 256, Bytes: 144, Fallback: Q5_0,
		BlockScales: []int{0, 2}, Subs: PairSubs, SubRaw: q4Scales, Fields: []BitField{runs(16, 4, 32)}}},
	{Q5_K, Desc{Name: "q5_k", FileType: 16, Block: 256, Bytes: 176, Fallback: Q5_1,
		BlockScales: []int{0, 2}, Subs: PairSubs, SubRaw: q4Scales, Fields: []BitField{runs(48, 4, 32),
			runs(16, 1, 32)}}},
	{Q6_K, Desc{Name: "q6_k", FileType: 18, Block: 256, Bytes: 210, Fallback: Q8_0,
		BlockScales: []int{208}, Subs: SignedSubs, SubK: 16, SubRaw: q6Scales,
		Fields: []BitField{runs(0, 4, 64), runs(128, 2, 32)}, ZeroPoint: 32}},

	{IQ4_XS, Desc{Name: "iq4_xs", FileType: 30, Block: 256, Bytes: 136, Fallback: IQ4_NL,
		BlockScales: []int{0}, Subs: SignedSubs, SubRaw: iq4Scales, Fields: []BitField{nibbles(8)},
		Codebook: &kvalues}},
	{MXFP4, Desc{Name: "mxfp4", FileType: 38, Block: 32, Bytes: 17,
		BlockScales: []int{0}, ScaleRaw: exponentHalf, Fields: []BitField{nibbles(1)}, Codebook: &fp4Values}},
	{NVFP4, Desc{Name: "nvfp4", FileType: 39, Block: 64, Bytes: 36, Unit: 0x1p116,
		Subs: FloatSubs, SubK: 16, SubRaw: fp8Scales, Fields: []BitField{runs(4, 4, 8)}, Codebook: &fp4Values}},
	{TQ2_0, Desc{Name: "tq2_0", FileType: 37, Block: 256, Bytes: 66, Fallback: Q4_0,
		BlockScales: []int{64}, Fields: []BitField{runs(0, 2, 32)}, ZeroPoint: 1}},
	{TQ1_0, Desc{Name: "tq1_0", FileType: 36, Block: 256, Bytes: 54, Fallback: Q4_0,
		BlockScales: []int{52}, Raw: tq1Form, Fields: []BitField{plane(2)}, ZeroPoint: 1}},
	{Q1_0, Desc{Name: "q1_0", FileType: 40, Block: 128, Bytes: 18,
		BlockScales: []int{0}, Fields: []BitField{runs(2, 1, 1)}, Shift: 1, ZeroPoint: 1}},
	{Q2_0, Desc{Name: "q2_0", FileType: 41, Block: 64, Bytes: 18,
		BlockScales: []int{0}, Fields: []BitField{runs(2, 2, 1)}, ZeroPoint: 1}},

	{IQ3_S, Desc{Name: "iq3_s", FileType: 26, Block: 256, Bytes: 110, Fallback: IQ4_NL,
		BlockScales: []int{0}, Subs: SignedSubs, SubRaw: nibbleScales(106),
		Raw: iq3S, Fields: []BitField{plane(4)}, Codebook: &odds3}},
	{IQ3_XXS, Desc{Name: "iq3_xxs", FileType: 23, Block: 256, Bytes: 98, Fallback: IQ4_NL, Unit: 1. / 4,
		BlockScales: []int{0}, Subs: SignedSubs, SubRaw: scaleOfTop(66, 32, 4),
		Raw: iq3XXS, Fields: []BitField{plane(4)}, Codebook: &values3}},
	{IQ2_S, Desc{Name: "iq2_s", FileType: 28, Block: 256, Bytes: 82, Fallback: IQ4_NL, Unit: 1. / 8,
		BlockScales: []int{0}, Subs: OddSubs, SubK: 16, SubRaw: nibblePairs(74),
		Raw: iq2S, Fields: []BitField{plane(2), plane(1)}, Codebook: &values2}},
	{IQ2_XS, Desc{Name: "iq2_xs", FileType: 20, Block: 256, Bytes: 74, Fallback: IQ4_NL, Unit: 1. / 8,
		BlockScales: []int{0}, Subs: OddSubs, SubK: 16, SubRaw: nibblePairs(66),
		Raw: iq2XS, Fields: []BitField{plane(2), plane(1)}, Codebook: &values2}},
	{IQ2_XXS, Desc{Name: "iq2_xxs", FileType: 19, Block: 256, Bytes: 66, Fallback: IQ4_NL, Unit: 1. / 8,
		BlockScales: []int{0}, Subs: ParitySubs, SubRaw: scaleOfTop(2, 64, 8),
		Raw: iq2XXS, Fields: []BitField{plane(2), plane(1)}, Codebook: &values2}},
	{IQ1_M, Desc{Name: "iq1_m", FileType: 31, Block: 256, Bytes: 56, Fallback: IQ4_NL, Unit: 1. / 8,
		BlockScales: []int{48}, ScaleRaw: iq1MHalf, Subs: OddSubs, SubK: 16, SubRaw: iq1MScales,
		Raw: iq1M, Fields: []BitField{plane(2), {Bits: 1, Share: 4}}, Codebook: &values1}},
	{IQ1_S, Desc{Name: "iq1_s", FileType: 24, Block: 256, Bytes: 50, Fallback: IQ4_NL, Unit: 1. / 8,
		BlockScales: []int{0}, Subs: SignedSubs, SubRaw: iq1Scales,
		Raw: iq1S, Fields: []BitField{plane(2)}, Codebook: &values1}},
}
