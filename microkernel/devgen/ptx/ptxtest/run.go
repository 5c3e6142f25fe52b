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
	m := newMachine(p, params, buffers)
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
	warps   []*warp
}

func newMachine(p *program, params []uint64, buffers [][]byte) *machine {
	m := &machine{program: p, params: params, buffers: buffers, memory: make([]byte, p.shared)}
	for first := 0; first < m.size; first += warpSize {
		w := &warp{machine: m, first: first, live: min(warpSize, m.size-first),
			registers: make([][warpSize]uint64, m.registers)}
		for l := range w.live {
			w.all = append(w.all, l)
		}
		m.warps = append(m.warps, w)
	}
	return m
}

func (m *machine) runGroup(group [3]int) error {
	m.group = group
	for i := range m.memory {
		m.memory[i] = 0xA5
	}
	for _, w := range m.warps {
		w.reset()
	}
	for ended := 0; ended < len(m.warps); {
		ended = 0
		for _, w := range m.warps {
			if err := w.run(); err != nil {
				return err
			}
			if w.ended {
				ended++
			}
		}
		if ended > 0 && ended < len(m.warps) {
			return fmt.Errorf("%d of %d warps end while others wait at a barrier", ended, len(m.warps))
		}
	}
	return nil
}

// warp is 32 threads.
type warp struct {
	*machine
	first     int // thread
	live      int
	all       []int // the live threads
	diverged  bool
	at        int           // program counter of all threads that have not diverged
	pc        [warpSize]int // program counters of threads that have diverged
	registers [][warpSize]uint64
	active    []int // threads that execute the present instruction
	subset    [warpSize]int
	ended     bool
	open      []copy16
	groups    [][]copy16

	zeros    [warpSize]uint64
	operands [3][warpSize]uint64 // values of operands that are not registers
}

// reset prepares the warp for a workgroup.
func (w *warp) reset() {
	clear(w.registers)
	w.diverged, w.at, w.ended, w.open, w.groups = false, 0, false, nil, nil
}

// copy16 is a pending asynchronous copy.
type copy16 struct {
	to   uint64
	data [16]byte
}

// run executes until a barrier or the end.
func (w *warp) run() error {
	for !w.ended {
		in := w.next()
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

// next returns the next instruction and advances the threads that execute it, which become active.
// Of threads that have diverged, those with the lowest program counter go first, so that they meet
// the others again.
func (w *warp) next() *instr {
	if !w.diverged {
		w.active = w.all
		w.at++
		return &w.code[w.at-1]
	}
	lowest := w.pc[0]
	for _, pc := range w.pc[1:w.live] {
		lowest = min(lowest, pc)
	}
	w.active = w.subset[:0]
	for l, pc := range w.pc[:w.live] {
		if pc == lowest {
			w.active = append(w.active, l)
			w.pc[l]++
		}
	}
	if len(w.active) == w.live {
		w.diverged, w.at, w.active = false, lowest+1, w.all
	}
	return &w.code[lowest]
}

// branch moves the active threads whose predicate holds to the target.
func (w *warp) branch(in *instr) {
	taken := 0
	for _, l := range w.active {
		if in.pred < 0 || (w.registers[in.pred][l] != 0) != in.negated {
			taken++
		}
	}
	if !w.diverged && (taken == 0 || taken == w.live) {
		if taken > 0 {
			w.at = in.target
		}
		return
	}
	if !w.diverged {
		w.diverged = true
		for l := range w.live {
			w.pc[l] = w.at
		}
	}
	for _, l := range w.active {
		if in.pred < 0 || (w.registers[in.pred][l] != 0) != in.negated {
			w.pc[l] = in.target
		}
	}
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
		w.branch(in)
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

// values returns an operand of every thread: the register itself, or to.
func (w *warp) values(o *operand, to *[warpSize]uint64) *[warpSize]uint64 {
	if o.kind == register {
		return &w.registers[o.index]
	}
	for _, l := range w.active {
		to[l] = w.value(o, l)
	}
	return to
}

// address returns the n bytes of memory at the address at, a multiple of n.
func (w *warp) address(at uint64, l int, global bool, n uint64) ([]byte, error) {
	memory := w.memory
	if global {
		i := int(at>>offsetBits) - 1
		if i < 0 || i >= len(w.buffers) {
			return nil, fmt.Errorf("thread %d: address %#x is in no buffer", w.first+l, at)
		}
		memory, at = w.buffers[i], at&(1<<offsetBits-1)
	}
	if at%n != 0 || at+n > uint64(len(memory)) {
		space := "shared"
		if global {
			space = "global"
		}
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
	load := in.op[0] == "ld"
	o, list := &in.args[0], in.args[1:]
	if load {
		o, list = &in.args[len(in.args)-1], in.args[:len(in.args)-1]
	}
	if in.op[2] == "v4" != (len(list) == 4) || len(list) != 1 && len(list) != 4 {
		return fmt.Errorf("a transfer of %d words", len(list))
	}
	addresses := w.values(o, &w.operands[0])
	offset := offsetOf(o)
	blocks := make([][]byte, warpSize)
	for _, l := range w.active {
		b, err := w.address(addresses[l]+offset, l, in.global, 4*uint64(len(list)))
		if err != nil {
			return err
		}
		blocks[l] = b
	}
	for j := range list {
		var words *[warpSize]uint64
		if load {
			words = &w.registers[list[j].index]
		} else {
			words = w.values(&list[j], &w.operands[1])
		}
		for _, l := range w.active {
			if b := blocks[l][4*j:]; load {
				words[l] = uint64(binary.LittleEndian.Uint32(b))
			} else {
				binary.LittleEndian.PutUint32(b, uint32(words[l]))
			}
		}
	}
	return nil
}

// offsetOf returns what an address operand adds to its register.
func offsetOf(o *operand) uint64 {
	if o.kind == register {
		return o.value
	}
	return 0
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
		to := w.value(&in.args[0], l) + offsetOf(&in.args[0])
		if _, err := w.address(to, l, false, 16); err != nil {
			return err
		}
		from, err := w.address(w.value(&in.args[1], l)+offsetOf(&in.args[1]), l, true, 16)
		if err != nil {
			return err
		}
		w.open = append(w.open, copy16{to, [16]byte(from)})
	}
	return nil
}
