package vector

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
)

// Registers of the delta rule.
const (
	deltaS     = asm.R8  // row of the state
	deltaS2    = asm.RSI // the same of a second panel
	deltaQ     = asm.RDX
	deltaK     = asm.RCX
	deltaNext  = asm.R10 // the keys of the row that follows
	deltaV     = asm.R13
	deltaOut   = asm.R14
	deltaDecay = asm.R15
	deltaBeta  = asm.R12
	deltaCount = asm.R11
)

// Vector registers of the delta rule; names are those of vec.Delta. Those with two numbers are for
// two vectors of columns.
const (
	deltaD         = 0  // decay
	deltaX         = 1  // 2: beta * (v - S'k)
	deltaSQ        = 3  // 4: S'q over the even rows of the state; 5 and 6 over the odd ones
	deltaSK        = 7  // 8: S'k of the next position likewise; 9 and 10
	deltaRow       = 11 // 12: a row of the state
	deltaKeyElem   = 13 // the elements of q and k for that row,
	deltaQueryElem = 14
	deltaNextElem  = 15 // and of the next position's k
)

// deltaOdd is the distance from the registers of sums of even rows of the state to those of odd
// rows. Two chains hide the latency of one.
const deltaOdd = 2

// emitDelta: P state, q, k, v, out, decay, beta; N dim, rows, then strides of q, k and v, of out
// and of decay and beta, and columns. The arguments are overwritten for each panel.
//
// Each position passes over the state once. The sums over the old state that the next position
// needs are computed from the values as they are written, so each vector takes a load, a store and
// four arithmetic instructions. AVX-512 processes two panels at a time, AVX2 one, which is the
// same number of chains.
func emitDelta(g gen) {
	done, next, one := g.NewLabel(), g.NewLabel(), g.NewLabel()
	g.Bind(next)
	g.Mov(left, argN(5))
	g.Test(left, left)
	g.Jcc(asm.LessOrEqual, done)
	if g.Wide {
		g.Cmp(left, asm.Imm32(2*arith.Lanes))
		g.Jcc(asm.NotZero, one)
		g.deltaRows([]asm.Reg{deltaS, deltaS2}, false)
		g.Jmp(done)
		g.Bind(one)
	}
	rows := []asm.Reg{deltaS, deltaS}[:g.Parts]
	partial := g.NewLabel()
	g.Cmp(left, asm.Imm32(arith.Lanes))
	g.Jcc(asm.Less, partial)
	g.deltaRows(rows, false)
	g.Mov(deltaCount, argN(0))
	g.Shl(deltaCount, 6)
	g.Add(deltaCount, argP(0))
	g.Mov(argP(0), deltaCount)
	for _, p := range []int{3, 4} {
		g.Mov(deltaCount, argP(p))
		g.Add(deltaCount, asm.Imm32(4*arith.Lanes))
		g.Mov(argP(p), deltaCount)
	}
	g.Mov(deltaCount, argN(5))
	g.Sub(deltaCount, asm.Imm32(arith.Lanes))
	g.Mov(argN(5), deltaCount)
	g.Jmp(next)
	g.Bind(partial)
	g.SetTail()
	g.deltaRows(rows, true)
	g.Bind(done)
}

// deltaRows emits all rows for one vector of columns in each of the panels.
func (g gen) deltaRows(panels []asm.Reg, tail bool) {
	n := len(panels)
	g.Mov(deltaQ, argP(1))
	g.Mov(deltaK, argP(2))
	g.Mov(deltaV, argP(3))
	g.Mov(deltaOut, argP(4))
	g.Mov(deltaDecay, argP(5))
	g.Mov(deltaBeta, argP(6))
	g.Mov(rows, argN(1))
	g.zeroSums(deltaSK, n)
	g.overDelta(panels, func(at func(j int) asm.Mem, u int) {
		g.I(asm.VBROADCASTSS, g.V(deltaKeyElem), asm.AtIndex(deltaK, index, 4, 4*u))
		for j := range n {
			g.I(asm.VFMADD231PS, g.V(deltaSK+u%2*deltaOdd+j), g.V(deltaKeyElem), at(j))
		}
	})
	g.joinSums(deltaSK, n)
	g.OverRows(rows, func() { g.deltaRow(panels, tail) })
}

// deltaRow emits one position.
func (g gen) deltaRow(panels []asm.Reg, tail bool) {
	n := len(panels)
	side := func(base asm.Reg, j int) asm.Mem { return asm.At(base, 4*arith.Lanes/g.Parts*j) }
	g.I(asm.VBROADCASTSS, g.V(deltaD), asm.At(deltaDecay, 0))
	g.I(asm.VBROADCASTSS, g.V(deltaKeyElem), asm.At(deltaBeta, 0))
	for j := range n {
		x := g.V(deltaX + j)
		g.LoadGroup(x, side(deltaV, j), j, tail)
		g.I(asm.VFNMADD231PS, x, g.V(deltaSK+j), g.V(deltaD))
		g.I(asm.VMULPS, x, x, g.V(deltaKeyElem))
	}
	g.zeroSums(deltaSK, n)
	g.zeroSums(deltaSQ, n)
	g.fetchDelta()
	last := g.NewLabel()
	g.Mov(deltaNext, deltaK)
	g.Cmp(rows, asm.Imm32(1))
	g.Jcc(asm.Zero, last)
	g.advance(deltaNext, 2, deltaCount)
	g.Bind(last)
	g.overDelta(panels, func(at func(j int) asm.Mem, u int) {
		g.I(asm.VBROADCASTSS, g.V(deltaKeyElem), asm.AtIndex(deltaK, index, 4, 4*u))
		g.I(asm.VBROADCASTSS, g.V(deltaQueryElem), asm.AtIndex(deltaQ, index, 4, 4*u))
		g.I(asm.VBROADCASTSS, g.V(deltaNextElem), asm.AtIndex(deltaNext, index, 4, 4*u))
		for j := range n {
			g.I(asm.VMULPS, g.V(deltaRow+j), g.V(deltaD), at(j))
		}
		for j := range n {
			g.I(asm.VFMADD231PS, g.V(deltaRow+j), g.V(deltaKeyElem), g.V(deltaX+j))
		}
		for j := range n {
			g.I(asm.VMOVUPS, at(j), g.V(deltaRow+j))
			g.I(asm.VFMADD231PS, g.V(deltaSQ+u%2*deltaOdd+j), g.V(deltaQueryElem), g.V(deltaRow+j))
			g.I(asm.VFMADD231PS, g.V(deltaSK+u%2*deltaOdd+j), g.V(deltaNextElem), g.V(deltaRow+j))
		}
	})
	g.joinSums(deltaSK, n)
	g.joinSums(deltaSQ, n)
	for j := range n {
		g.StoreGroup(side(deltaOut, j), g.V(deltaSQ+j), j, tail)
	}
	g.Mov(deltaK, deltaNext)
	g.advance(deltaQ, 2, deltaCount)
	g.advance(deltaV, 2, deltaCount)
	g.advance(deltaOut, 3, deltaCount)
	g.advance(deltaDecay, 4, deltaCount)
	g.advance(deltaBeta, 4, deltaCount)
}

func (g gen) zeroSums(first, n int) {
	for j := range n {
		g.Zero(first + j)
		g.Zero(first + deltaOdd + j)
	}
}

// joinSums adds the sums of odd rows to those of even rows.
func (g gen) joinSums(first, n int) {
	for j := range n {
		g.I(asm.VADDPS, g.V(first+j), g.V(first+j), g.V(first+deltaOdd+j))
	}
}

// fetchDelta prefetches the queries and keys of the position after the next: the hardware
// prefetcher does not follow rows that are many pages long.
func (g gen) fetchDelta() {
	query, key, at := deltaNext, deltaS, index
	g.Mov(deltaCount, argN(2))
	g.Lea(query, asm.AtIndex(deltaQ, deltaCount, 8, 0))
	g.Lea(key, asm.AtIndex(deltaK, deltaCount, 8, 0))
	g.Xor(at, at)
	loop := g.Here()
	g.Prefetch(asm.T0, asm.AtIndex(query, at, 4, 0))
	g.Prefetch(asm.T0, asm.AtIndex(key, at, 4, 0))
	g.Add(at, asm.Imm32(arith.Lanes))
	g.Cmp(at, argN(0))
	g.Jcc(asm.Less, loop)
	g.Mov(deltaCount, argN(2))
	g.Lea(query, asm.AtIndex(deltaV, deltaCount, 8, 0))
	g.Prefetch(asm.T0, asm.At(query, 0))
	g.Prefetch(asm.T0, asm.At(query, 64))
}

// overDelta runs body for each row of the state, unrolled by four; row u of an iteration is at
// index+u.
func (g gen) overDelta(panels []asm.Reg, body func(at func(j int) asm.Mem, u int)) {
	const unroll = 4
	two := panels[len(panels)-1] == deltaS2
	g.Mov(deltaS, argP(0))
	if two {
		g.Mov(deltaS2, argN(0))
		g.Shl(deltaS2, 6)
		g.Add(deltaS2, deltaS)
	}
	g.Xor(index, index)
	steps := func(n int) {
		for u := range n {
			body(func(j int) asm.Mem {
				within := 0
				if !two {
					within = 4 * arith.Lanes / g.Parts * j
				}
				return asm.At(panels[j], 4*arith.Lanes*u+within)
			}, u)
		}
		g.Add(deltaS, asm.Imm32(int32(4*arith.Lanes*n)))
		if two {
			g.Add(deltaS2, asm.Imm32(int32(4*arith.Lanes*n)))
		}
		g.Add(index, asm.Imm32(int32(n)))
	}
	rest := g.NewLabel()
	g.Mov(deltaCount, argN(0))
	g.Shr(deltaCount, 2)
	g.Test(deltaCount, deltaCount)
	g.Jcc(asm.Zero, rest)
	g.Align(16)
	top := g.Here()
	steps(unroll)
	g.Dec(deltaCount)
	g.Jcc(asm.NotZero, top)
	g.Bind(rest)
	for n := unroll / 2; n > 0; n /= 2 {
		none := g.NewLabel()
		g.Mov(deltaCount, argN(0))
		g.And(deltaCount, asm.Imm32(int32(n)))
		g.Jcc(asm.Zero, none)
		steps(n)
		g.Bind(none)
	}
}
