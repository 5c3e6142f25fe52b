package offload

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/devgen/kernels"
	"sandwich/runtime/device"
)

// description is a comparable description of a kernel, such as kernels.GEMM.
type description interface {
	Kernel() (*devgen.Kernel, error)
}

// The kernels without properties.
type (
	addRows    struct{}
	gatherRows struct{}
)

func (addRows) Kernel() (*devgen.Kernel, error)    { return kernels.AddRows() }
func (gatherRows) Kernel() (*devgen.Kernel, error) { return kernels.GatherRows() }

// bindings and pushes are the arguments of a launch by the names that the kernel gives them. A
// kernel need not have all of them.
type (
	bindings map[string]device.Slice
	pushes   map[string]any // int or float32
)

// word returns the bits of a push word.
func word(x any) uint32 {
	if f, ok := x.(float32); ok {
		return math.Float32bits(f)
	}
	return uint32(x.(int))
}

// programs compiles and verifies kernels when they are first used. Methods may be called
// concurrently, except for free.
type programs struct {
	dev      device.Device
	rounding bool // results may differ by rounding

	mu      sync.Mutex // guards the fields below; not held during compilations
	inexact bool       // the results of a kernel differ by rounding
	list    map[description]device.Program
}

// of returns the program of a kernel. Two callers that need a new one at the same time both compile
// it.
func (p *programs) of(d description) (device.Program, error) {
	p.mu.Lock()
	c, ok := p.list[d]
	p.mu.Unlock()
	if ok {
		return c, nil
	}
	k, err := d.Kernel()
	if err != nil {
		return nil, err
	}
	if c, err = p.dev.Compile(k); err != nil {
		return nil, err
	}
	exact, err := p.verify(d, c)
	if err != nil {
		return nil, errors.Join(err, c.Free())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inexact = p.inexact || !exact
	if first, ok := p.list[d]; ok {
		return first, c.Free()
	}
	p.list[d] = c
	return c, nil
}

// exact reports whether no compiled kernel differs by rounding.
func (p *programs) exact() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.inexact
}

func (p *programs) free() (err error) {
	for _, c := range p.list {
		err = errors.Join(err, c.Free())
	}
	p.list = nil
	return err
}

// verified has the kernels that were verified in this process, by device and driver, and whether
// they are exact. Their results do not change.
var verified sync.Map // of bool by verifiedKey

type verifiedKey struct {
	name, api, driver, kernel string
	matrixUnit, rounding      bool
}

// Limits of a verification.
const (
	verifyTimeout = time.Minute
	maxDistance   = 1e-2 // of results that differ by rounding
)

// verify runs a tile of a kernel on the device and in Go, and reports whether the results are
// equal. It returns an error that names the kernel if they differ, unless they may differ by
// rounding and are close.
func (p *programs) verify(d description, program device.Program) (exact bool, err error) {
	i, k := p.dev.Info(), program.Kernel()
	if i.Simulated {
		return true, nil
	}
	key := verifiedKey{i.Name, i.API, i.Driver, k.Name, i.MatrixUnit, p.rounding}
	if exact, ok := verified.Load(key); ok {
		return exact.(bool), nil
	}
	s, err := sampleOf(d, k)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), verifyTimeout)
	defer cancel()
	err = device.VerifyProgram(ctx, p.dev, program, s.groups, s.buffers, s.push)
	var m *device.Mismatch
	if errors.As(err, &m) {
		switch {
		case !p.rounding:
			return false, unsupported("%s: arithmetic that is not exact (%v)", i.Name, err)
		case m.Distance > maxDistance:
			return false, unsupported("%s: wrong results (%v)", i.Name, err)
		}
	} else if err != nil {
		return false, err
	}
	verified.Store(key, m == nil)
	return m == nil, nil
}
