package cuda

import (
	"errors"
	"fmt"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/devgen/ptx"
	"sandwich/runtime/device"
	"sandwich/runtime/device/hostcall"
)

type program struct {
	device           *openDevice
	kernel           *devgen.Kernel
	module, function uint64
}

func (p *program) Kernel() *devgen.Kernel { return p.kernel }

// Compile translates a kernel to PTX, which the driver compiles.
func (d *openDevice) Compile(k *devgen.Kernel) (device.Program, error) {
	if err := d.Err(); err != nil {
		return nil, err
	}
	if err := k.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", device.ErrRefused, err)
	}
	text, err := ptx.Emit(k, d.properties.target)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", device.ErrRefused, err)
	}
	p := &program{device: d, kernel: k}
	err = d.With(d.Builder, func(f *hostcall.Frame) error { return p.load(f, text) })
	if _, refused := errors.AsType[result](err); refused {
		err = fmt.Errorf("%w: kernel %s: %w", device.ErrRefused, k.Name, err)
	}
	if err != nil {
		return nil, errors.Join(err, p.Free())
	}
	return p, nil
}

// load compiles the text and checks that a workgroup fits.
func (p *program) load(f *hostcall.Frame, text string) error {
	const (
		optionLog, optionLogBytes = 5, 6
		logBytes                  = 4096
		maxThreads                = 0 // attribute of a function
	)
	d := p.device
	f.Limit *= 10 // large kernels take seconds
	out, log := f.Alloc(8), f.Alloc(logBytes)
	options := f.Words([]uint32{optionLog, optionLogBytes})
	values := f.Struct(log, uint64(logBytes))
	err := d.call(f, "cuModuleLoadDataEx", out.Addr(), f.String(text).Addr(), 2, options.Addr(), values.Addr())
	if message := log.CString(0, 300); err != nil && message != "" {
		return fmt.Errorf("%w: %s", err, message)
	}
	if err != nil {
		return err
	}
	p.module = out.U64(0)
	if err := d.call(f, "cuModuleGetFunction", out.Addr(), p.module, f.String(p.kernel.Name).Addr()); err != nil {
		return err
	}
	p.function = out.U64(0)
	if err := d.call(f, "cuFuncGetAttribute", out.Addr(), maxThreads, p.function); err != nil {
		return err
	}
	if most := out.U32(0); uint32(p.kernel.Size) > most {
		return fmt.Errorf("%w: kernel %s: workgroups of %d invocations, above %d", device.ErrRefused, p.kernel.Name,
			p.kernel.Size, most)
	}
	return nil
}

// Free unloads the program.
func (p *program) Free() error {
	d := p.device
	if d.Process.Err() != nil || p.module == 0 {
		return nil
	}
	return d.With(d.Builder, func(f *hostcall.Frame) error {
		module := p.module
		p.module = 0
		return d.call(f, "cuModuleUnload", module)
	})
}

// step is a call that adds work to the stream. A kernel has its argument block in block.
type step struct {
	name  string
	args  []uint64
	block []uint32
}

type commands struct{ steps []step }

// Free does nothing: commands have no memory of the driver.
func (c *commands) Free() error { return nil }

// Record translates the steps to calls.
func (d *openDevice) Record(steps ...device.Step) (device.Commands, error) {
	if err := d.Err(); err != nil {
		return nil, err
	}
	c := &commands{}
	err := device.CheckSteps(steps, func(l device.Launch) error {
		p := l.Program.(*program)
		c.steps = append(c.steps, step{
			name: "cuLaunchKernel",
			args: []uint64{p.function, uint64(l.Groups[0]), uint64(l.Groups[1]), uint64(l.Groups[2]),
				uint64(p.kernel.Size), 1, 1, 0},
			block: l.Arguments(func(b device.Buffer) uint64 { return b.(*buffer).address }),
		})
		return nil
	}, func(t device.Copy) error {
		c.steps = append(c.steps, step{name: "cuMemcpyDtoDAsync_v2", args: []uint64{
			t.To.Buffer.(*buffer).address + t.To.Offset, t.From.Buffer.(*buffer).address + t.From.Offset, t.Bytes}})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// callsAtOnce is the number of calls in one request to the driver's process.
const callsAtOnce = 20

// Submit makes the calls and records an event after them.
func (d *openDevice) Submit(c device.Commands) (device.Ticket, error) {
	return d.Queue.Submit(func(t device.Ticket) error {
		err := d.With(d.Main, func(f *hostcall.Frame) error { return d.submit(f, c.(*commands).steps, t) })
		if _, failed := errors.AsType[result](err); failed {
			return d.Lose(err) // some of the steps may run
		}
		return err
	})
}

func (d *openDevice) submit(f *hostcall.Frame, steps []step, t device.Ticket) error {
	event, err := d.event(f)
	if err != nil {
		return err
	}
	var calls []hostcall.Call
	var names []string
	flush := func() error {
		n, err := f.Do(calls)
		if err != nil {
			return err
		}
		if n < len(calls) {
			return d.failure(f, names[n], int32(calls[n].Result))
		}
		calls, names = calls[:0], names[:0]
		return nil
	}
	for _, s := range append(steps[:len(steps):len(steps)], step{name: "cuEventRecord", args: []uint64{event}}) {
		args := append(s.args[:len(s.args):len(s.args)], d.stream)
		if s.name == "cuLaunchKernel" {
			args = append(args, 0, launchBlock(f, s.block))
		}
		calls = append(calls, hostcall.Call{Function: d.functions[s.name], Args: args, Check: true})
		names = append(names, s.name)
		if len(calls) == callsAtOnce {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	d.eventMu.Lock()
	defer d.eventMu.Unlock()
	d.events[t] = event
	return nil
}

// launchBlock returns the address of the list that passes an argument block to cuLaunchKernel.
func launchBlock(f *hostcall.Frame, words []uint32) uint64 {
	const end, pointer, size = 0, 1, 2
	if len(words) == 0 {
		return 0
	}
	return f.Struct(uint64(pointer), f.Words(words), uint64(size), f.Struct(uint64(4*len(words))), uint64(end)).Addr()
}
