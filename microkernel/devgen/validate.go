package devgen

import (
	"fmt"
	"slices"
)

// Validate returns why the kernel cannot run, or nil: its arguments and shared memory exceed the
// limits that every device has, or an instruction is malformed or reads a value outside its scope.
func (k *Kernel) Validate() error {
	const maxShared = 48 << 10
	switch {
	case k.Name == "":
		return fmt.Errorf("a kernel has no name")
	case k.Size < 1 || k.Size > 1024:
		return fmt.Errorf("kernel %s: workgroups of %d invocations are not supported; use 1 to 1024", k.Name, k.Size)
	case k.argumentBytes() > MaxArgumentBytes:
		return fmt.Errorf("kernel %s: %d bytes of arguments exceed %d", k.Name, k.argumentBytes(), MaxArgumentBytes)
	case k.SharedBytes() > maxShared:
		return fmt.Errorf("kernel %s: %d bytes of shared memory exceed %d", k.Name, k.SharedBytes(), maxShared)
	}
	c := checker{k: k, known: make([]bool, len(k.Values))}
	for v, d := range k.Values {
		c.known[v] = d.Const
	}
	if err := c.body(k.Body); err != nil {
		return fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	return nil
}

// checker checks the instructions of a kernel.
type checker struct {
	k     *Kernel
	known []bool // values that the present instruction may read
}

func (c *checker) body(body []Instr) error {
	defer func(outer []bool) { c.known = outer }(slices.Clone(c.known))
	for i := range body {
		if err := c.instr(&body[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) instr(in *Instr) error {
	if in.Op >= ops {
		return fmt.Errorf("unknown operation %d", in.Op)
	}
	for _, v := range in.Args {
		if v <= 0 || int(v) >= len(c.known) || !c.known[v] {
			return fmt.Errorf("%s reads value %d outside its scope", in.Op, v)
		}
	}
	if err := c.operands(in); err != nil {
		return err
	}
	if n := c.indices(in.Op); n >= 0 && (in.Index < 0 || int(in.Index) >= n) {
		return fmt.Errorf("%s has index %d of %d", in.Op, in.Index, n)
	}
	for _, v := range in.Dst {
		if v <= 0 || int(v) >= len(c.known) || c.known[v] {
			return fmt.Errorf("%s defines value %d twice", in.Op, v)
		}
		c.known[v] = true
	}
	err := c.body(in.Body)
	if in.Op == OpFor { // after the loop, targets differ in the value of its counter
		c.known[in.Dst[0]] = false
	}
	return err
}

// operands checks the types of operands and results.
func (c *checker) operands(in *Instr) error {
	info := &infos[in.Op]
	if info.args == nil {
		return nil // a builder method has checked them
	}
	if len(in.Args) != len(info.args) {
		return fmt.Errorf("%s has %d operands, want %d", in.Op, len(in.Args), len(info.args))
	}
	for i, v := range in.Args {
		if t := c.k.Values[v].Type; t != info.args[i] {
			return fmt.Errorf("operand %d of %s is %s, want %s", i, in.Op, t, info.args[i])
		}
	}
	if !info.void && len(in.Dst) != 1 {
		return fmt.Errorf("%s has %d results, want 1", in.Op, len(in.Dst))
	}
	return nil
}

// indices returns the number of things that Index selects from, or -1.
func (c *checker) indices(o Op) int {
	switch o {
	case OpPush:
		return len(c.k.Push)
	case OpLoad, OpStore, OpLoad4, OpStore4, OpCopyAsync:
		return len(c.k.Bindings)
	case OpLoadShared, OpStoreShared:
		return len(c.k.Shared)
	case OpLoadVar, OpStoreVar:
		return len(c.k.Vars)
	case OpBuiltin:
		return int(GroupZ) + 1
	}
	return -1
}
