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
	args  []uint64 // without the stream and what follows it
	block []uint32
}

// commands are calls that a submission makes. From the second submission on they are a graph, which
// one call starts.
type commands struct {
	device    *openDevice
	steps     []step
	submitted bool
	graph     uint64 // 0: none
}

// Free releases the graph.
func (c *commands) Free() error {
	d := c.device
	if c.graph == 0 || d.Process.Err() != nil {
		return nil
	}
	graph := c.graph
	c.graph = 0
	return d.With(d.Main, func(f *hostcall.Frame) error { return d.call(f, "cuGraphExecDestroy", graph) })
}

// Record translates the steps to calls.
func (d *openDevice) Record(steps ...device.Step) (device.Commands, error) {
	if err := d.Err(); err != nil {
		return nil, err
	}
	c := &commands{device: d, steps: make([]step, 0, len(steps))}
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
		c.steps = append(c.steps, step{name: copyCall, args: []uint64{
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
		err := d.With(d.Main, func(f *hostcall.Frame) error { return d.submit(f, c.(*commands), t) })
		if _, failed := errors.AsType[result](err); failed {
			return d.Lose(err) // some of the steps may run
		}
		return err
	})
}

func (d *openDevice) submit(f *hostcall.Frame, c *commands, t device.Ticket) error {
	event, err := d.event(f)
	if err != nil {
		return err
	}
	if c.submitted && c.graph == 0 {
		if c.graph, err = d.capture(f, c.steps); err != nil {
			return err
		}
	}
	c.submitted = true
	started, err := d.startGraph(f, c.graph, event)
	if err != nil {
		return err
	}
	if !started {
		calls := batch{device: d, frame: f}
		if err := calls.addSteps(c.steps); err != nil {
			return err
		}
		if err := calls.add("cuEventRecord", event, d.stream); err != nil {
			return err
		}
		if err := calls.flush(); err != nil {
			return err
		}
	}
	d.eventMu.Lock()
	defer d.eventMu.Unlock()
	d.events[t] = event
	return nil
}

// batch makes calls many at a time. An error means that one failed and those after it were not
// made.
type batch struct {
	device *openDevice
	frame  *hostcall.Frame
	calls  []hostcall.Call
	names  []string
	args   []uint64
	// copyCall replaces the call of the same name; "": none.
	copyCall string
}

func (b *batch) add(name string, args ...uint64) error {
	at := len(b.args)
	b.args = append(b.args, args...)
	b.calls = append(b.calls, hostcall.Call{Function: b.device.functions[name], Args: b.args[at:], Check: true})
	b.names = append(b.names, name)
	if len(b.calls) == callsAtOnce {
		return b.flush()
	}
	return nil
}

func (b *batch) addSteps(steps []step) error {
	for i := range steps {
		s := &steps[i]
		var args [11]uint64
		n := copy(args[:], s.args)
		args[n] = b.device.stream
		n++
		if s.name == "cuLaunchKernel" {
			args[n], args[n+1] = 0, launchBlock(b.frame, s.block)
			n += 2
		}
		name := s.name
		if name == copyCall && b.copyCall != "" {
			name = b.copyCall
		}
		if err := b.add(name, args[:n]...); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) flush() error {
	n, err := b.frame.Do(b.calls)
	if err != nil {
		return err
	}
	if n < len(b.calls) {
		return b.device.failure(b.frame, b.names[n], int32(b.calls[n].Result))
	}
	b.calls, b.names, b.args = b.calls[:0], b.names[:0], b.args[:0]
	return nil
}

// launchBlock returns the address of the list that passes an argument block to cuLaunchKernel.
func launchBlock(f *hostcall.Frame, words []uint32) uint64 {
	const (
		end, pointer, size = 0, 1, 2 // keys of the list
		sizeAt, wordsAt    = 40, 48  // after the list
	)
	if len(words) == 0 {
		return 0
	}
	b := f.Alloc(wordsAt + 4*len(words))
	for i, v := range []uint64{pointer, b.At(wordsAt), size, b.At(sizeAt), end, uint64(4 * len(words))} {
		b.PutU64(8*i, v)
	}
	for i, w := range words {
		b.PutU32(wordsAt+4*i, w)
	}
	return b.Addr()
}

// graphFunctions are the functions of graphs. Drivers before CUDA 11.4 lack the first one, for
// which they have the second one; others may lack more, and work without graphs.
var graphFunctions = []string{"cuGraphInstantiateWithFlags", "cuGraphInstantiate_v2", "cuStreamBeginCapture_v2",
	"cuStreamEndCapture", "cuGraphLaunch", "cuGraphDestroy", "cuGraphExecDestroy", copyOfGraphs}

// copyOfGraphs copies between memory of any kind. A driver may refuse graphs in which copyCall
// copies memory of the host.
const (
	copyCall     = "cuMemcpyDtoDAsync_v2"
	copyOfGraphs = "cuMemcpyAsync"
)

// graphs says whether submissions can be graphs.
type graphs struct {
	refusal error // why not; nil: they can
}

// loadGraphs looks up the functions of graphs.
func (l *library) loadGraphs(file *hostcall.Library) error {
	for i, name := range graphFunctions {
		at, err := file.Symbol(name)
		if errors.Is(err, hostcall.ErrLost) {
			return err
		}
		l.functions[name] = at
		if instantiates := i == 1 && l.functions[graphFunctions[0]] != 0; i > 0 && err != nil && !instantiates {
			l.graphs.refusal = err
		}
	}
	return nil
}

// capture makes a graph of steps. It returns 0 if the driver refuses, after which it is not asked
// again. d.Main is held, so that no other work is added to the stream meanwhile.
func (d *openDevice) capture(f *hostcall.Frame, steps []step) (graph uint64, err error) {
	if d.graphs.refusal != nil {
		return 0, nil
	}
	const relaxed = 2 // other threads may allocate and wait
	if err := d.call(f, "cuStreamBeginCapture_v2", d.stream, relaxed); err != nil {
		return 0, d.withoutGraphs(err)
	}
	calls := batch{device: d, frame: f, copyCall: copyOfGraphs}
	err = calls.addSteps(steps)
	if err == nil {
		err = calls.flush()
	}
	out := f.Alloc(16)
	if ended := d.call(f, "cuStreamEndCapture", d.stream, out.Addr()); err == nil {
		err = ended
	}
	captured := out.U64(0)
	if err == nil {
		err = d.instantiate(f, captured, out.At(8))
	}
	if captured != 0 {
		if destroyed := d.call(f, "cuGraphDestroy", captured); err == nil {
			err = destroyed
		}
	}
	if err != nil {
		return 0, d.withoutGraphs(err)
	}
	return out.U64(8), nil
}

// instantiate makes an executable graph, whose handle the driver writes to an address.
func (d *openDevice) instantiate(f *hostcall.Frame, graph, to uint64) error {
	if d.functions["cuGraphInstantiateWithFlags"] != 0 {
		return d.call(f, "cuGraphInstantiateWithFlags", to, graph, 0)
	}
	return d.call(f, "cuGraphInstantiate_v2", to, graph, 0, 0, 0)
}

// startGraph adds a graph to the stream and records an event after it. It reports false if the
// driver refuses the graph, after which it is not asked again.
func (d *openDevice) startGraph(f *hostcall.Frame, graph, event uint64) (started bool, err error) {
	if d.graphs.refusal != nil || graph == 0 {
		return false, nil
	}
	calls := [2]hostcall.Call{
		{Function: d.functions["cuGraphLaunch"], Args: []uint64{graph, d.stream}, Check: true},
		{Function: d.functions["cuEventRecord"], Args: []uint64{event, d.stream}, Check: true}}
	switch n, err := f.Do(calls[:]); {
	case err != nil:
		return false, err
	case n == 0:
		return false, d.withoutGraphs(d.failure(f, "cuGraphLaunch", int32(calls[0].Result)))
	case n == 1:
		return true, d.failure(f, "cuEventRecord", int32(calls[1].Result))
	}
	return true, nil
}

// withoutGraphs makes all later submissions make their calls one by one. It returns the error if
// the driver's process is lost, else nil.
func (d *openDevice) withoutGraphs(err error) error {
	if _, refused := errors.AsType[result](err); !refused {
		return err
	}
	d.graphs.refusal = fmt.Errorf("the driver refuses graphs: %w", err)
	return nil
}
