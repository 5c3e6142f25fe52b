package offload

import (
	"context"
	"errors"
	"sync"
	"time"

	"sandwich/runtime/device"
)

// programs compiles and verifies kernels when they are first used. It is not safe for concurrent
// use.
type programs struct {
	dev      device.Device
	rounding bool // results may differ by rounding
	inexact  bool // those of a kernel do
	list     map[description]device.Program
}

func (p *programs) of(d description) (device.Program, error) {
	if c, ok := p.list[d]; ok {
		return c, nil
	}
	k, err := d.Kernel()
	if err != nil {
		return nil, err
	}
	c, err := p.dev.Compile(k)
	if err != nil {
		return nil, err
	}
	if err := p.verify(d, c); err != nil {
		return nil, errors.Join(err, c.Free())
	}
	p.list[d] = c
	return c, nil
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
	mostDistance  = 1e-2 // of results that differ by rounding
)

// verify runs a tile of a kernel on the device and in Go. It returns an error that names the kernel
// if the results differ, unless they may differ by rounding and are close.
func (p *programs) verify(d description, program device.Program) error {
	i, k := p.dev.Info(), program.Kernel()
	if i.Simulated {
		return nil
	}
	key := verifiedKey{i.Name, i.API, i.Driver, k.Name, i.MatrixUnit, p.rounding}
	if exact, ok := verified.Load(key); ok {
		p.inexact = p.inexact || !exact.(bool)
		return nil
	}
	s, err := sampleOf(d, k)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), verifyTimeout)
	defer cancel()
	err = device.VerifyProgram(ctx, p.dev, program, s.groups, s.buffers, s.push)
	var m *device.Mismatch
	if errors.As(err, &m) {
		switch {
		case !p.rounding:
			return unsupported("%s: arithmetic that is not exact (%v)", i.Name, err)
		case m.Distance > mostDistance:
			return unsupported("%s: wrong results (%v)", i.Name, err)
		}
		p.inexact, err = true, nil
	}
	if err == nil {
		verified.Store(key, m == nil)
	}
	return err
}
