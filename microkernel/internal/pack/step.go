package pack

import "sandwich/microkernel/qtype"

// line is the distance in bytes from a word of a plane to the next one of the column.
const line = 4 * qtype.PanelWidth

// step computes words of one bit field for all columns: all the words that some bytes of a block
// of each row contribute to.
type step struct {
	run   func(s *step, to, src []byte, stride, columns int) // src: the first of columns, stride bytes apart
	from  [4]int                                             // where in a block of a row
	shift [4]uint                                            // and the lowest bit of each byte
	to    [8]int                                             // words in a block of a panel
	flip  uint64                                             // the sign bits of numbers with a sign
	share bool                                               // one byte is all there is of a word
}

// fieldSteps returns the steps for bit field i of a block whose rows are in file layout.
func fieldSteps(d *qtype.Desc, i int) (list []step) {
	f := &d.Fields[i]
	strip, run := 16, (*step).nibbles // bytes that have all bits of the words they belong to
	switch f.Bits {
	case 2:
		run = (*step).pairs
	case 1:
		strip, run = qtype.SubBlockK, (*step).ones
	}
	if f.Bits == 8 || f.Share != 0 || f.Run%strip != 0 {
		for n := range d.SubBlocks() {
			list = append(list, subBlockStep(d, n, i))
		}
		return list
	}
	each := 8 / f.Bits
	for k0 := 0; k0 < d.Block; k0 += each * f.Run {
		for k := k0; k < k0+f.Run; k += strip {
			s := step{run: run}
			s.from[0], _ = f.Find(k)
			for r := range each {
				s.to[r] = word(d, i, k+r*f.Run)
			}
			list = append(list, s)
		}
	}
	return list
}

// subBlockStep returns the step for bit field i of sub-block n alone: of a row in file layout, or
// of the numbers that a RawForm has written.
func subBlockStep(d *qtype.Desc, n, i int) (s step) {
	f := &d.Fields[i]
	s.to[0], s.share = word(d, i, n*qtype.SubBlockK), f.Share != 0
	for o := range s.from {
		from, low := 8*o, d.Low(i)
		if d.Raw == nil {
			from, low = f.Find(n*qtype.SubBlockK + 8*o)
		}
		s.from[o], s.shift[o] = from, uint(low)
	}
	dense := d.Raw == nil && f.Run == 1 // adjacent numbers
	switch {
	case f.Bits == 8:
		s.run = (*step).bytes
	case f.Bits == 4:
		s.run = (*step).subNibbles
	case f.Bits == 2 && dense:
		s.run = (*step).densePairs
	case f.Bits == 2:
		s.run = (*step).subPairs
	case dense:
		s.run = (*step).denseOnes
	default:
		s.run = (*step).subOnes
	}
	if d.Signed && d.Raw == nil {
		s.flip = 128 * eachByte // adding 128 to an int8 is flipping its sign bit
	}
	return s
}

// word returns the offset in a block of a panel of the word with bit field i of element k and its
// successors.
func word(d *qtype.Desc, i, k int) int {
	at, _ := d.Place(k%qtype.SubBlockK/4, i)
	return d.HeadBytes() + k/qtype.SubBlockK*d.SubBlockBytes() + at
}
