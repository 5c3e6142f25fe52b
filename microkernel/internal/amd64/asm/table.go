package asm

// Moves, broadcasts, gathers of lanes.
var (
	VMOVUPS   = def(Op{"vmovups", both, pNone, m0F, 0x10, rm, full, 4, 0, 0x11})
	VMOVAPS   = def(Op{"vmovaps", both, pNone, m0F, 0x28, rm, full, 4, 0, 0x29})
	VMOVDQU   = def(Op{"vmovdqu", vex, pF3, m0F, 0x6F, rm, full, 4, 0, 0x7F})
	VMOVDQA   = def(Op{"vmovdqa", vex, p66, m0F, 0x6F, rm, full, 4, 0, 0x7F})
	VMOVDQU8  = def(Op{"vmovdqu8", evex, pF2, m0F, 0x6F, rm, full, 1, 0, 0x7F})
	VMOVDQU16 = def(Op{"vmovdqu16", evex | ew1, pF2, m0F, 0x6F, rm, full, 2, 0, 0x7F})
	VMOVDQU32 = def(Op{"vmovdqu32", evex, pF3, m0F, 0x6F, rm, full, 4, 0, 0x7F})
	VMOVDQU64 = def(Op{"vmovdqu64", evex | ew1, pF3, m0F, 0x6F, rm, full, 8, 0, 0x7F})
	VMOVDQA32 = def(Op{"vmovdqa32", evex, p66, m0F, 0x6F, rm, full, 4, 0, 0x7F})
	VMOVNTPS  = def(Op{"vmovntps", both, pNone, m0F, 0x2B, mr, full, 4, 0, 0x2B})
	VMOVSS    = def(Op{"vmovss", both, pF3, m0F, 0x10, rm, scalar, 4, 0, 0x11}) // memory forms only
	VMOVSD    = def(Op{"vmovsd", both | ew1, pF2, m0F, 0x10, rm, scalar, 8, 0, 0x11})
	// r32 or memory; a Reg destination stores too
	VMOVD       = def(Op{"vmovd", both, p66, m0F, 0x6E, rm, scalar, 4, 0, 0x7E})
	VMOVQ       = def(Op{"vmovq", both | vw1 | ew1, p66, m0F, 0x6E, rm, scalar, 8, 0, 0x7E})
	VMOVSHDUP   = def(Op{"vmovshdup", both, pF3, m0F, 0x16, rm, full, 4, 0, 0})
	VMOVSLDUP   = def(Op{"vmovsldup", both, pF3, m0F, 0x12, rm, full, 4, 0, 0})
	VMOVHLPS    = def(Op{"vmovhlps", both, pNone, m0F, 0x12, rvm, full, 4, 0, 0})
	VMOVLHPS    = def(Op{"vmovlhps", both, pNone, m0F, 0x16, rvm, full, 4, 0, 0})
	VMASKMOVPSL = def(Op{"vmaskmovps", vex, p66, m0F38, 0x2C, rvm, full, 4, 0, 0}) // load: dst, mask, [m]
	VMASKMOVPSS = def(Op{"vmaskmovps", vex, p66, m0F38, 0x2E, mvr, full, 4, 0, 0}) // store: [m], mask, src
	VMOVMSKPS   = def(Op{"vmovmskps", vex, pNone, m0F, 0x50, rm, full, 4, 0, 0})   // dst is a Reg
	VPMOVMSKB   = def(Op{"vpmovmskb", vex, p66, m0F, 0xD7, rm, full, 1, 0, 0})     // dst is a Reg

	VBROADCASTSS    = def(Op{"vbroadcastss", both, p66, m0F38, 0x18, rm, scalar, 4, 0, 0})
	VBROADCASTSD    = def(Op{"vbroadcastsd", both | ew1, p66, m0F38, 0x19, rm, scalar, 8, 0, 0})
	VPBROADCASTB    = def(Op{"vpbroadcastb", both, p66, m0F38, 0x78, rm, scalar, 1, 0, 0})
	VPBROADCASTW    = def(Op{"vpbroadcastw", both, p66, m0F38, 0x79, rm, scalar, 2, 0, 0})
	VPBROADCASTD    = def(Op{"vpbroadcastd", both, p66, m0F38, 0x58, rm, scalar, 4, 0, 0})
	VPBROADCASTQ    = def(Op{"vpbroadcastq", both | ew1, p66, m0F38, 0x59, rm, scalar, 8, 0, 0})
	VPBROADCASTDR   = def(Op{"vpbroadcastd", evex, p66, m0F38, 0x7C, rm, scalar, 4, 0, 0}) // source is a Reg
	VBROADCASTF128  = def(Op{"vbroadcastf128", vex, p66, m0F38, 0x1A, rm, fix16, 4, 0, 0})
	VBROADCASTI128  = def(Op{"vbroadcasti128", vex, p66, m0F38, 0x5A, rm, fix16, 4, 0, 0})
	VBROADCASTF32X4 = def(Op{"vbroadcastf32x4", evex, p66, m0F38, 0x1A, rm, fix16, 4, 0, 0})
	VBROADCASTI32X4 = def(Op{"vbroadcasti32x4", evex, p66, m0F38, 0x5A, rm, fix16, 4, 0, 0})
	VBROADCASTF64X4 = def(Op{"vbroadcastf64x4", evex | ew1, p66, m0F38, 0x1B, rm, fix32, 8, 0, 0})
)

// Floating point arithmetic.
var (
	VADDPS  = def(Op{"vaddps", both | bc, pNone, m0F, 0x58, rvm, full, 4, 0, 0})
	VSUBPS  = def(Op{"vsubps", both | bc, pNone, m0F, 0x5C, rvm, full, 4, 0, 0})
	VMULPS  = def(Op{"vmulps", both | bc, pNone, m0F, 0x59, rvm, full, 4, 0, 0})
	VDIVPS  = def(Op{"vdivps", both | bc, pNone, m0F, 0x5E, rvm, full, 4, 0, 0})
	VMAXPS  = def(Op{"vmaxps", both | bc, pNone, m0F, 0x5F, rvm, full, 4, 0, 0})
	VMINPS  = def(Op{"vminps", both | bc, pNone, m0F, 0x5D, rvm, full, 4, 0, 0})
	VSQRTPS = def(Op{"vsqrtps", both | bc, pNone, m0F, 0x51, rm, full, 4, 0, 0})
	VADDSS  = def(Op{"vaddss", both, pF3, m0F, 0x58, rvm, scalar, 4, 0, 0})
	VSUBSS  = def(Op{"vsubss", both, pF3, m0F, 0x5C, rvm, scalar, 4, 0, 0})
	VMULSS  = def(Op{"vmulss", both, pF3, m0F, 0x59, rvm, scalar, 4, 0, 0})
	VDIVSS  = def(Op{"vdivss", both, pF3, m0F, 0x5E, rvm, scalar, 4, 0, 0})
	VMAXSS  = def(Op{"vmaxss", both, pF3, m0F, 0x5F, rvm, scalar, 4, 0, 0})
	VMINSS  = def(Op{"vminss", both, pF3, m0F, 0x5D, rvm, scalar, 4, 0, 0})
	VSQRTSS = def(Op{"vsqrtss", both, pF3, m0F, 0x51, rvm, scalar, 4, 0, 0})

	VFMADD132PS  = def(Op{"vfmadd132ps", both | bc, p66, m0F38, 0x98, rvm, full, 4, 0, 0})
	VFMADD213PS  = def(Op{"vfmadd213ps", both | bc, p66, m0F38, 0xA8, rvm, full, 4, 0, 0})
	VFMADD231PS  = def(Op{"vfmadd231ps", both | bc, p66, m0F38, 0xB8, rvm, full, 4, 0, 0})
	VFMSUB213PS  = def(Op{"vfmsub213ps", both | bc, p66, m0F38, 0xAA, rvm, full, 4, 0, 0})
	VFMSUB231PS  = def(Op{"vfmsub231ps", both | bc, p66, m0F38, 0xBA, rvm, full, 4, 0, 0})
	VFNMADD213PS = def(Op{"vfnmadd213ps", both | bc, p66, m0F38, 0xAC, rvm, full, 4, 0, 0})
	VFNMADD231PS = def(Op{"vfnmadd231ps", both | bc, p66, m0F38, 0xBC, rvm, full, 4, 0, 0})
	VFMADD213SS  = def(Op{"vfmadd213ss", both, p66, m0F38, 0xA9, rvm, scalar, 4, 0, 0})
	VFMADD231SS  = def(Op{"vfmadd231ss", both, p66, m0F38, 0xB9, rvm, scalar, 4, 0, 0})
	VFNMADD213SS = def(Op{"vfnmadd213ss", both, p66, m0F38, 0xAD, rvm, scalar, 4, 0, 0})
	VFNMADD231SS = def(Op{"vfnmadd231ss", both, p66, m0F38, 0xBD, rvm, scalar, 4, 0, 0})
	VDPBF16PS    = def(Op{"vdpbf16ps", evex | bc, pF3, m0F38, 0x52, rvm, full, 4, 0, 0})

	VSCALEFPS   = def(Op{"vscalefps", evex | bc, p66, m0F38, 0x2C, rvm, full, 4, 0, 0})
	VRNDSCALEPS = def(Op{"vrndscaleps", evex | bc, p66, m0F3A, 0x08, rmi, full, 4, 0, 0})
	VROUNDPS    = def(Op{"vroundps", vex, p66, m0F3A, 0x08, rmi, full, 4, 0, 0})
	VCMPPS      = def(Op{"vcmpps", vex, pNone, m0F, 0xC2, rvmi, full, 4, 0, 0})       // dst is a Vec
	VCMPPSK     = def(Op{"vcmpps", evex | bc, pNone, m0F, 0xC2, rvmi, full, 4, 0, 0}) // dst is a Mask
)

// Conversions.
var (
	VCVTDQ2PS  = def(Op{"vcvtdq2ps", both | bc, pNone, m0F, 0x5B, rm, full, 4, 0, 0})
	VCVTPS2DQ  = def(Op{"vcvtps2dq", both | bc, p66, m0F, 0x5B, rm, full, 4, 0, 0})
	VCVTTPS2DQ = def(Op{"vcvttps2dq", both | bc, pF3, m0F, 0x5B, rm, full, 4, 0, 0})
	VCVTPH2PS  = def(Op{"vcvtph2ps", both, p66, m0F38, 0x13, rm, half, 4, 0, 0})
	VCVTPS2PH  = def(Op{"vcvtps2ph", both, p66, m0F3A, 0x1D, mri, half, 4, 0, 0x1D}) // imm 0: round to nearest even

	VPMOVSXBW = def(Op{"vpmovsxbw", both, p66, m0F38, 0x20, rm, half, 1, 0, 0})
	VPMOVSXBD = def(Op{"vpmovsxbd", both, p66, m0F38, 0x21, rm, quarter, 1, 0, 0})
	VPMOVSXWD = def(Op{"vpmovsxwd", both, p66, m0F38, 0x23, rm, half, 2, 0, 0})
	VPMOVZXBW = def(Op{"vpmovzxbw", both, p66, m0F38, 0x30, rm, half, 1, 0, 0})
	VPMOVZXBD = def(Op{"vpmovzxbd", both, p66, m0F38, 0x31, rm, quarter, 1, 0, 0})
	VPMOVZXWD = def(Op{"vpmovzxwd", both, p66, m0F38, 0x33, rm, half, 2, 0, 0})
	VPMOVDB   = def(Op{"vpmovdb", evex, pF3, m0F38, 0x31, mr, quarter, 1, 0, 0x31})
	VPMOVSDB  = def(Op{"vpmovsdb", evex, pF3, m0F38, 0x21, mr, quarter, 1, 0, 0x21})
	VPMOVDW   = def(Op{"vpmovdw", evex, pF3, m0F38, 0x33, mr, half, 2, 0, 0x33})
)
