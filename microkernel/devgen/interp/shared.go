package interp

import (
	"encoding/binary"
	"fmt"

	"sandwich/microkernel/devgen"
)

// sharedArray is a shared array with the last accesses to each word. The access by one invocation
// conflicts with the access by another if one of them writes and no barrier lies between them.
type sharedArray struct {
	name  string
	words []uint32
	last  []accesses
}

// accesses are the last accesses to a word: invocations and epochs. Epoch 0 is never.
type accesses struct {
	writer, written int32
	reader, read    int32
	copying         bool // an asynchronous copy is pending
}

// severalReaders is a reader that stands for more than one invocation.
const severalReaders = -1

func newSharedArray(a devgen.SharedArray) sharedArray {
	return sharedArray{name: a.Name, words: make([]uint32, a.Words), last: make([]accesses, a.Words)}
}

func (s *sharedArray) reset() { clear(s.last) }

func (s *sharedArray) read(l int32, i uint32, epoch int32) (uint32, error) {
	if int(i) >= len(s.words) {
		return 0, fmt.Errorf("invocation %d: word %d of %s, which has %d", l, i, s.name, len(s.words))
	}
	a := &s.last[i]
	switch {
	case a.copying:
		return 0, fmt.Errorf("invocation %d reads word %d of %s, to which a copy is pending", l, i, s.name)
	case a.written == 0:
		return 0, fmt.Errorf("invocation %d reads word %d of %s, which was never written", l, i, s.name)
	case a.written == epoch && a.writer != l:
		return 0, fmt.Errorf("invocation %d reads word %d of %s, which invocation %d wrote without a barrier since",
			l, i, s.name, a.writer)
	}
	if a.read != epoch {
		a.read, a.reader = epoch, l
	} else if a.reader != l {
		a.reader = severalReaders
	}
	return s.words[i], nil
}

// claim checks that an invocation may write a word.
func (s *sharedArray) claim(l int32, i uint32, epoch int32) error {
	if int(i) >= len(s.words) {
		return fmt.Errorf("invocation %d: word %d of %s, which has %d", l, i, s.name, len(s.words))
	}
	a := &s.last[i]
	switch {
	case a.copying:
		return fmt.Errorf("invocation %d writes word %d of %s, to which a copy is pending", l, i, s.name)
	case a.written == epoch && a.writer != l || a.read == epoch && a.reader != l:
		return fmt.Errorf("invocation %d writes word %d of %s, which another one used without a barrier since", l, i,
			s.name)
	}
	return nil
}

func (s *sharedArray) write(l int32, i uint32, epoch int32, x uint32) error {
	if err := s.claim(l, i, epoch); err != nil {
		return err
	}
	s.words[i] = x
	s.last[i].writer, s.last[i].written = l, epoch
	return nil
}

func (m *machine) sharedAccess(in *devgen.Instr, active []int32) error {
	s, index := &m.shared[in.Index], m.values[in.Args[0]]
	if in.Op == devgen.OpStoreShared {
		x := m.values[in.Args[1]]
		for _, l := range active {
			if err := s.write(l, index[l], m.epoch, x[l]); err != nil {
				return err
			}
		}
		return nil
	}
	d := m.values[in.Dst[0]]
	for _, l := range active {
		x, err := s.read(l, index[l], m.epoch)
		if err != nil {
			return err
		}
		d[l] = x
	}
	return nil
}

// copy4 is a pending copy of four words.
type copy4 struct {
	invocation int32
	array      devgen.Array
	to         uint32
	words      [4]uint32
}

// together runs an operation that orders or combines the invocations.
func (m *machine) together(in *devgen.Instr, active []int32) error {
	if in.Op == devgen.OpCopyAsync {
		return m.beginCopies(in, active)
	}
	if len(active) != m.k.Size {
		return fmt.Errorf("%d of %d invocations reach it", len(active), m.k.Size)
	}
	switch in.Op {
	case devgen.OpBarrier:
		m.epoch++
	case devgen.OpCommitAsync:
		m.groups = append(m.groups, m.open)
		m.open = nil
	case devgen.OpWaitAsync:
		for len(m.groups) > int(in.Index) {
			m.finishCopies(m.groups[0])
			m.groups = m.groups[1:]
		}
	case devgen.OpMMA:
		if m.k.Size%32 != 0 {
			return fmt.Errorf("workgroups of %d invocations are not a multiple of 32", m.k.Size)
		}
		for warp := 0; warp < m.k.Size; warp += 32 {
			m.mma(in, warp)
		}
	}
	return nil
}

func (m *machine) beginCopies(in *devgen.Instr, active []int32) error {
	s, buf := &m.shared[in.Array], m.buffers[in.Index]
	to, from := m.values[in.Args[0]], m.values[in.Args[1]]
	for _, l := range active {
		c := copy4{invocation: l, array: in.Array, to: to[l]}
		p := 4 * uint64(from[l])
		if c.to%4 != 0 || from[l]%4 != 0 || p+16 > uint64(len(buf)) {
			return fmt.Errorf("invocation %d: words %d of %s to %d of %s", l, from[l], m.k.Bindings[in.Index].Name,
				c.to, s.name)
		}
		for i := range c.words {
			if err := s.claim(l, c.to+uint32(i), m.epoch); err != nil {
				return err
			}
			s.last[c.to+uint32(i)].copying = true
			c.words[i] = binary.LittleEndian.Uint32(buf[p+4*uint64(i):])
		}
		m.open = append(m.open, c)
	}
	return nil
}

func (m *machine) finishCopies(group []copy4) {
	for _, c := range group {
		s := &m.shared[c.array]
		for i, x := range c.words {
			s.words[c.to+uint32(i)] = x
			s.last[c.to+uint32(i)] = accesses{writer: c.invocation, written: m.epoch}
		}
	}
}

// mma multiplies the fragments of 32 invocations, see devgen.OpMMA.
func (m *machine) mma(in *devgen.Instr, warp int) {
	half := (len(in.Args) - 4) / 3 // words of B
	word := func(i, lane int) uint32 { return m.values[in.Args[i]][warp+lane] }
	var a [16][32]int8
	var w [32][8]int8
	for lane := range 32 {
		g, t := lane/4, lane%4
		for i := range 2 * half {
			for j := range 4 {
				a[g+i%2*8][i/2*16+4*t+j] = int8(word(i, lane) >> (8 * j))
			}
		}
		for i := range half {
			for j := range 4 {
				w[16*i+4*t+j][g] = int8(word(2*half+i, lane) >> (8 * j))
			}
		}
	}
	for lane := range 32 {
		for e := range 4 {
			row, column := lane/4+e/2*8, lane%4*2+e%2
			sum := word(3*half+e, lane)
			for k := range 16 * half {
				sum += uint32(int32(a[row][k]) * int32(w[k][column]))
			}
			m.values[in.Dst[e]][warp+lane] = sum
		}
	}
}
