// Package interp runs kernels of package devgen in Go. It is the oracle of the translators and
// computes the results of simulated devices.
//
// The invocations of a workgroup run in lockstep. In addition to the results, the interpreter
// checks what a device would not: accesses outside a buffer, barriers that some invocations do not
// reach, and accesses to shared memory that no barrier orders.
package interp

import (
	"fmt"

	"sandwich/microkernel/devgen"
)

// Run dispatches a grid of workgroups. buffers has one slice per binding, in whole words, little
// endian; push has one word per push word. It returns an error if the arguments do not fit the
// kernel or the kernel violates a rule; the buffers may then be partly written. Run may be called
// concurrently with buffers that do not overlap.
func Run(k *devgen.Kernel, grid [3]int, buffers [][]byte, push []uint32) error {
	if len(buffers) != len(k.Bindings) || len(push) != len(k.Push) {
		return fmt.Errorf("kernel %s: %d buffers and %d push words; it has %d and %d", k.Name, len(buffers), len(push),
			len(k.Bindings), len(k.Push))
	}
	m := newMachine(k, buffers, push)
	for m.group[2] = 0; m.group[2] < grid[2]; m.group[2]++ {
		for m.group[1] = 0; m.group[1] < grid[1]; m.group[1]++ {
			for m.group[0] = 0; m.group[0] < grid[0]; m.group[0]++ {
				if err := m.runGroup(); err != nil {
					return fmt.Errorf("kernel %s, workgroup %v: %w", k.Name, m.group, err)
				}
			}
		}
	}
	return nil
}

// machine runs one workgroup at a time.
type machine struct {
	k       *devgen.Kernel
	buffers [][]byte
	push    []uint32
	group   [3]int

	values [][]uint32 // by value: one word per invocation
	vars   [][]uint32
	all    []int32 // every invocation
	shared []sharedArray
	epoch  int32   // barriers passed
	open   []copy4 // copies since the last commit
	groups [][]copy4
}

func newMachine(k *devgen.Kernel, buffers [][]byte, push []uint32) *machine {
	m := &machine{k: k, buffers: buffers, push: push, values: make([][]uint32, len(k.Values)),
		vars: make([][]uint32, len(k.Vars))}
	words := make([]uint32, (len(k.Values)+len(k.Vars))*k.Size)
	next := func() []uint32 {
		out := words[:k.Size:k.Size]
		words = words[k.Size:]
		return out
	}
	for v, d := range k.Values {
		m.values[v] = next()
		for l := range m.values[v] {
			if d.Const {
				m.values[v][l] = d.Bits
			}
		}
	}
	for v := range m.vars {
		m.vars[v] = next()
	}
	for l := range k.Size {
		m.all = append(m.all, int32(l))
	}
	for _, a := range k.Shared {
		m.shared = append(m.shared, newSharedArray(a))
	}
	return m
}

func (m *machine) runGroup() error {
	for i := range m.shared {
		m.shared[i].reset()
	}
	m.epoch, m.open, m.groups = 1, nil, nil
	return m.run(m.k.Body, m.all)
}

// run executes instructions for the active invocations.
func (m *machine) run(body []devgen.Instr, active []int32) error {
	for i := range body {
		if err := m.instr(&body[i], active); err != nil {
			return fmt.Errorf("%s: %w", body[i].Op, err)
		}
	}
	return nil
}

func (m *machine) instr(in *devgen.Instr, active []int32) error {
	switch in.Op {
	case devgen.OpBuiltin:
		m.builtin(m.values[in.Dst[0]], in.Index)
	case devgen.OpPush:
		for l := range m.values[in.Dst[0]] {
			m.values[in.Dst[0]][l] = m.push[in.Index]
		}
	case devgen.OpIf:
		return m.runIf(in, active)
	case devgen.OpFor:
		return m.runFor(in, active)
	case devgen.OpLoadVar:
		d, s := m.values[in.Dst[0]], m.vars[in.Index]
		for _, l := range active {
			d[l] = s[l]
		}
	case devgen.OpStoreVar:
		d, s := m.vars[in.Index], m.values[in.Args[0]]
		for _, l := range active {
			d[l] = s[l]
		}
	case devgen.OpLoad, devgen.OpStore, devgen.OpLoad4, devgen.OpStore4:
		return m.global(in, active)
	case devgen.OpLoadShared, devgen.OpStoreShared:
		return m.sharedAccess(in, active)
	case devgen.OpBarrier, devgen.OpMMA, devgen.OpCopyAsync, devgen.OpCommitAsync, devgen.OpWaitAsync:
		return m.together(in, active)
	default:
		m.compute(in, active)
	}
	return nil
}

func (m *machine) builtin(d []uint32, which int32) {
	for l := range d {
		if which == devgen.LocalIndex {
			d[l] = uint32(l)
			continue
		}
		d[l] = uint32(m.group[which-devgen.GroupX])
	}
}

func (m *machine) runIf(in *devgen.Instr, active []int32) error {
	c := m.values[in.Args[0]]
	taken := make([]int32, 0, len(active))
	for _, l := range active {
		if c[l] != 0 {
			taken = append(taken, l)
		}
	}
	if len(taken) == 0 {
		return nil
	}
	return m.run(in.Body, taken)
}

func (m *machine) runFor(in *devgen.Instr, active []int32) error {
	i, from := m.values[in.Dst[0]], m.values[in.Args[0]]
	to, step := m.values[in.Args[1]], m.values[in.Args[2]]
	counter := make([]uint32, len(i))
	for _, l := range active {
		counter[l] = from[l]
	}
	running := append([]int32(nil), active...)
	for {
		n := 0
		for _, l := range running {
			if counter[l] < to[l] {
				i[l] = counter[l]
				counter[l] += step[l]
				running[n] = l
				n++
			}
		}
		if running = running[:n]; n == 0 {
			return nil
		}
		if err := m.run(in.Body, running); err != nil {
			return err
		}
	}
}

// global runs a load or a store of a word or four words of a buffer.
func (m *machine) global(in *devgen.Instr, active []int32) error {
	index, binding := m.values[in.Args[0]], &m.k.Bindings[in.Index]
	load := in.Op == devgen.OpLoad || in.Op == devgen.OpLoad4
	if !load && binding.Access == devgen.Read || load && binding.Access == devgen.Write {
		return fmt.Errorf("binding %s does not allow it", binding.Name)
	}
	list := in.Dst
	if !load {
		list = in.Args[1:]
	}
	for _, l := range active {
		if int(index[l])%len(list) != 0 {
			return fmt.Errorf("invocation %d: %d words of %s from word %d on", l, len(list), binding.Name, index[l])
		}
	}
	for j, v := range list {
		if err := m.transfer(load, in.Index, index, uint32(j), m.values[v], active); err != nil {
			return err
		}
	}
	return nil
}

// transfer loads word index+offset of a buffer to d, or stores d to it.
func (m *machine) transfer(load bool, binding int32, index []uint32, offset uint32, d []uint32, active []int32) error {
	buf := m.buffers[binding]
	for _, l := range active {
		p := 4 * (uint64(index[l]) + uint64(offset))
		if p+4 > uint64(len(buf)) {
			return fmt.Errorf("invocation %d: word %d of %s, which has %d", l, p/4, m.k.Bindings[binding].Name,
				len(buf)/4)
		}
		w := (*[4]byte)(buf[p:])
		if load {
			d[l] = uint32(w[0]) | uint32(w[1])<<8 | uint32(w[2])<<16 | uint32(w[3])<<24
		} else {
			w[0], w[1], w[2], w[3] = byte(d[l]), byte(d[l]>>8), byte(d[l]>>16), byte(d[l]>>24)
		}
	}
	return nil
}
