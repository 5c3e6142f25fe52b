package ptxtest

import (
	"encoding/binary"
	"fmt"
)

const warpSize = 32

// Addresses are a buffer number in the upper bits and an offset in the lower ones.
const offsetBits = 40

// Run dispatches a grid of the entry of a module, like interp.Run: one buffer for each parameter
// that is an address, one word for each other one. The 32 threads of a warp run in lockstep where
// they agree; warps run one after another from barrier to barrier.
func Run(text string, grid [3]int, buffers [][]byte, push []uint32) error {
	p, err := parse(text)
	if err != nil {
		return err
	}
	params := make([]uint64, len(p.params))
	n := 0
	for i, q := range p.params {
		if q.wide {
			params[i] = uint64(n+1) << offsetBits
			n++
			continue
		}
		if i-n >= len(push) {
			return fmt.Errorf("the entry has more push words than %d", len(push))
		}
		params[i] = uint64(push[i-n])
	}
	if n != len(buffers) {
		return fmt.Errorf("the entry has %d addresses, not %d", n, len(buffers))
	}
	m := &machine{program: p, params: params, buffers: buffers}
	for z := range grid[2] {
		for y := range grid[1] {
			for x := range grid[0] {
				if err := m.runGroup([3]int{x, y, z}); err != nil {
					return fmt.Errorf("workgroup (%d, %d, %d): %w", x, y, z, err)
				}
			}
		}
	}
	return nil
}

type machine struct {
	*program
	params  []uint64
	buffers [][]byte
	memory  []byte // shared
	group   [3]int
}

func (m *machine) runGroup(group [3]int) error {
	m.group, m.memory = group, make([]byte, m.shared)
	for i := range m.memory {
		m.memory[i] = 0xA5
	}
	var warps []*warp
	for first := 0; first < m.size; first += warpSize {
		w := &warp{machine: m, first: first, live: min(warpSize, m.size-first),
			registers: make([][warpSize]uint64, m.registers)}
		warps = append(warps, w)
	}
	for ended := 0; ended < len(warps); {
		ended = 0
		for _, w := range warps {
			if err := w.run(); err != nil {
				return err
			}
			if w.ended {
				ended++
			}
		}
		if ended > 0 && ended < len(warps) {
			return fmt.Errorf("%d of %d warps end while others wait at a barrier", ended, len(warps))
		}
	}
	return nil
}

// warp is 32 threads.
type warp struct {
	*machine
	first     int // thread
	live      int
	pc        [warpSize]int
	registers [][warpSize]uint64
	active    []int // threads that execute the present instruction
	ended     bool
	open      []copy16
	groups    [][]copy16
}

// copy16 is a pending asynchronous copy.
type copy16 struct {
	to   uint64
	data [16]byte
}

// run executes until a barrier or the end. The threads with the lowest program counter go first,
// so that those that have diverged meet again.
func (w *warp) run() error {
	for !w.ended {
		lowest := w.pc[0]
		for _, pc := range w.pc[1:w.live] {
			lowest = min(lowest, pc)
		}
		at := w.active[:0]
		for l, pc := range w.pc[:w.live] {
			if pc == lowest {
				at = append(at, l)
				w.pc[l]++
			}
		}
		w.active = at
		in := &w.code[lowest]
		stop, err := w.step(in)
		if err != nil {
			return fmt.Errorf("%s: %w", in.text, err)
		}
		if stop {
			return nil
		}
	}
	return nil
}

// step executes an instruction. It returns true at a barrier and at the end.
func (w *warp) step(in *instr) (stop bool, err error) {
	switch in.op[0] {
	case "bar", "ret", "mma":
		if len(w.active) != w.live {
			return false, fmt.Errorf("%d of %d threads reach it", len(w.active), w.live)
		}
		if in.op[0] == "mma" {
			return false, w.mma(in)
		}
		w.ended = in.op[0] == "ret"
		return true, nil
	case "bra":
		for _, l := range w.active {
			if in.pred < 0 || (w.registers[in.pred][l] != 0) != in.negated {
				w.pc[l] = in.target
			}
		}
		return false, nil
	case "ld", "st":
		return false, w.transfer(in)
	case "cp":
		return false, w.copyAsync(in)
	}
	return false, w.compute(in)
}

// value returns an operand of a thread.
func (w *warp) value(o *operand, l int) uint64 {
	switch o.kind {
	case register:
		return w.registers[o.index][l]
	case parameter:
		return w.params[o.index]
	case special:
		switch o.name {
		case "%tid.x":
			return uint64(w.first + l)
		case "%ctaid.x":
			return uint64(w.group[0])
		case "%ctaid.y":
			return uint64(w.group[1])
		}
		return uint64(w.group[2])
	}
	return o.value
}

// address returns the memory at an address of n bytes, aligned to n.
func (w *warp) address(o *operand, l int, space string, n uint64) ([]byte, error) {
	at := w.value(o, l)
	if o.kind == register {
		at += o.value
	}
	memory := w.memory
	if space == "global" {
		i := int(at>>offsetBits) - 1
		if i < 0 || i >= len(w.buffers) {
			return nil, fmt.Errorf("thread %d: address %#x is in no buffer", w.first+l, at)
		}
		memory, at = w.buffers[i], at&(1<<offsetBits-1)
	}
	if at%n != 0 || at+n > uint64(len(memory)) {
		return nil, fmt.Errorf("thread %d: offset %d of %d bytes of %s memory", w.first+l, at, len(memory), space)
	}
	return memory[at:][:n], nil
}

func (w *warp) transfer(in *instr) error {
	if in.op[1] == "param" {
		for _, l := range w.active {
			w.registers[in.args[0].index][l] = w.value(&in.args[1], l)
		}
		return nil
	}
	for _, l := range w.active {
		if in.op[0] == "ld" {
			b, err := w.address(&in.args[1], l, in.op[1], 4)
			if err != nil {
				return err
			}
			w.registers[in.args[0].index][l] = uint64(binary.LittleEndian.Uint32(b))
			continue
		}
		b, err := w.address(&in.args[0], l, in.op[1], 4)
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint32(b, uint32(w.value(&in.args[1], l)))
	}
	return nil
}

func (w *warp) copyAsync(in *instr) error {
	switch in.op[2] {
	case "commit_group":
		w.groups = append(w.groups, w.open)
		w.open = nil
		return nil
	case "wait_group":
		for len(w.groups) > int(in.args[0].value) {
			for _, c := range w.groups[0] {
				copy(w.memory[c.to:], c.data[:])
			}
			w.groups = w.groups[1:]
		}
		return nil
	}
	for _, l := range w.active {
		to := w.value(&in.args[0], l) + in.args[0].value
		if _, err := w.address(&in.args[0], l, "shared", 16); err != nil {
			return err
		}
		from, err := w.address(&in.args[1], l, "global", 16)
		if err != nil {
			return err
		}
		w.open = append(w.open, copy16{to, [16]byte(from)})
	}
	return nil
}
