package vulkan

import (
	"encoding/binary"
	"errors"
	"fmt"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/devgen/spirv"
	"sandwich/runtime/device"
	"sandwich/runtime/device/codecache"
	"sandwich/runtime/device/hostcall"
)

// stageCompute is the shader stage of kernels.
const stageCompute = 0x20

type program struct {
	device   *logicalDevice
	kernel   *devgen.Kernel
	pipeline uint64
}

func (p *program) Kernel() *devgen.Kernel { return p.kernel }

// Compile translates a kernel to SPIR-V and creates its pipeline.
func (d *logicalDevice) Compile(k *devgen.Kernel) (device.Program, error) {
	if err := d.Err(); err != nil {
		return nil, err
	}
	if err := d.fits(k); err != nil {
		return nil, fmt.Errorf("%w: %w", device.ErrRefused, err)
	}
	words, err := spirv.Emit(k, d.spirv)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", device.ErrRefused, err)
	}
	p := &program{device: d, kernel: k}
	var key codecache.Key
	var stored, made []byte
	if d.codes != nil {
		key = d.keyOf(words)
		stored = d.codes.Take(key)
	}
	err = d.With(d.Builder, func(f *hostcall.Frame) (err error) {
		made, err = p.create(f, words, stored)
		return err
	})
	if _, ok := errors.AsType[result](err); ok {
		err = fmt.Errorf("%w: kernel %s: %w", device.ErrRefused, k.Name, err)
	}
	if err != nil {
		return nil, err
	}
	if d.codes != nil {
		d.codes.Put(key, made)
	}
	return p, nil
}

// fits returns why the device cannot run a kernel, or nil.
func (d *logicalDevice) fits(k *devgen.Kernel) error {
	if err := k.Validate(); err != nil {
		return err
	}
	if limit := d.physical.maxInvocations; uint32(k.Size) > limit {
		return fmt.Errorf("kernel %s: workgroups of %d invocations, above %d", k.Name, k.Size, limit)
	}
	if limit := d.physical.maxShared; uint32(k.SharedBytes()) > limit {
		return fmt.Errorf("kernel %s: %d bytes of shared memory, above %d", k.Name, k.SharedBytes(), limit)
	}
	return nil
}

// create creates the pipeline with code that was stored, if any, and returns the code to store.
func (p *program) create(f *hostcall.Frame, words []uint32, stored []byte) (made []byte, err error) {
	d, fs := p.device, p.device.functions
	f.Limit *= 10 // large kernels take seconds
	out := f.Alloc(8)
	shader := f.Struct(16, uint64(0), 0, uint64(4*len(words)), f.Words(words))
	if err := fs.call(f, "vkCreateShaderModule", d.handle, shader.Addr(), 0, out.Addr()); err != nil {
		return nil, err
	}
	module := out.U64(0)
	cache, err := d.newCache(f, stored)
	if err == nil {
		info := f.Struct(29, uint64(0), 0,
			uint64(18), uint64(0), 0, stageCompute, module, f.String("main"), uint64(0), // the stage, in place
			d.layout, uint64(0), 0)
		err = fs.call(f, "vkCreateComputePipelines", d.handle, cache, 1, info.Addr(), 0, out.Addr())
		p.pipeline = out.U64(0)
	}
	if cache != 0 && err == nil {
		made, err = d.codeOf(f, cache)
	}
	if cache != 0 {
		if err := fs.void(f, "vkDestroyPipelineCache", d.handle, cache, 0); err != nil {
			return nil, err
		}
	}
	if err := fs.void(f, "vkDestroyShaderModule", d.handle, module, 0); err != nil {
		return nil, err
	}
	return made, err
}

// keyOf returns the key of the code of a module.
func (d *logicalDevice) keyOf(words []uint32) codecache.Key {
	code := make([]byte, 0, 4*len(words))
	for _, w := range words {
		code = binary.LittleEndian.AppendUint32(code, w)
	}
	p := d.physical
	return codecache.KeyOf([]byte("vulkan"), []byte(p.name), p.cacheID,
		binary.LittleEndian.AppendUint32(nil, p.driver), code)
}

// newCache creates a pipeline cache with code that was stored, which the driver may ignore. It
// returns 0 if no code is kept.
func (d *logicalDevice) newCache(f *hostcall.Frame, stored []byte) (uint64, error) {
	if d.codes == nil {
		return 0, nil
	}
	out, data := f.Alloc(8), uint64(0)
	if len(stored) > 0 {
		data = f.Bytes(stored).Addr()
	}
	info := f.Struct(17, uint64(0), 0, uint64(len(stored)), data)
	err := d.functions.call(f, "vkCreatePipelineCache", d.handle, info.Addr(), 0, out.Addr())
	if _, refused := errors.AsType[result](err); refused {
		return 0, nil // the kernel is compiled without a cache
	}
	return out.U64(0), err
}

// codeOf returns the code in a pipeline cache, nil if it is too large to keep.
func (d *logicalDevice) codeOf(f *hostcall.Frame, cache uint64) ([]byte, error) {
	size := f.Alloc(8)
	get := func(data uint64) error {
		err := d.functions.call(f, "vkGetPipelineCacheData", d.handle, cache, size.Addr(), data)
		if _, refused := errors.AsType[result](err); refused {
			size.PutU64(0, 0)
			return nil // the kernel can be used, and is compiled again by the next process
		}
		return err
	}
	if err := get(0); err != nil {
		return nil, err
	}
	n := size.U64(0)
	if n == 0 || n > codecache.MostCode {
		return nil, nil
	}
	data := f.Alloc(int(n))
	if err := get(data.Addr()); err != nil {
		return nil, err
	}
	return data.Copy(int(min(n, size.U64(0)))), nil
}

// Free releases the pipeline.
func (p *program) Free() error {
	d := p.device
	if d.Process.Err() != nil {
		return nil
	}
	return d.With(d.Builder, func(f *hostcall.Frame) error {
		return d.functions.void(f, "vkDestroyPipeline", d.handle, p.pipeline, 0)
	})
}

// fill is a step that fills a buffer with zeros.
type fill struct{ buffer *buffer }

type commands struct {
	device *logicalDevice
	handle uint64
}

// Record writes the steps into a command buffer. A barrier follows each, or several copies between
// the same buffers.
func (d *logicalDevice) Record(steps ...device.Step) (device.Commands, error) {
	if err := d.Err(); err != nil {
		return nil, err
	}
	var all []any
	err := device.CheckSteps(steps, func(l device.Launch) error {
		all = append(all, l)
		return nil
	}, func(c device.Copy) error {
		all = append(all, c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	c, err := d.record(all)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (d *logicalDevice) record(steps []any) (*commands, error) {
	c := &commands{device: d}
	err := d.With(d.Main, func(f *hostcall.Frame) error {
		out := f.Alloc(8)
		allocate := f.Struct(40, uint64(0), d.pool, 0, 1)
		err := d.functions.call(f, "vkAllocateCommandBuffers", d.handle, allocate.Addr(), out.Addr())
		if err != nil {
			return err
		}
		c.handle = out.U64(0)
		const simultaneous = 4 // a submission may be pending more than once
		begin := f.Struct(42, uint64(0), simultaneous, uint64(0))
		if err := d.functions.call(f, "vkBeginCommandBuffer", c.handle, begin.Addr()); err != nil {
			return err
		}
		r := recorder{commands: c, frame: f, barrier: f.Struct(46, uint64(0), writes, reads)}
		for i := 0; i < len(steps); {
			n := max(1, copiesAtOnce(steps[i:]))
			if err := r.step(steps[i : i+n]); err != nil {
				return err
			}
			i += n
		}
		if err := r.flush(); err != nil {
			return err
		}
		return d.functions.call(f, "vkEndCommandBuffer", c.handle)
	})
	if err != nil && c.handle != 0 {
		err = errors.Join(err, c.Free())
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Access masks and stages of the barriers: shaders, copies and the host.
const (
	writes = 0x40 | 0x1000 | 0x4000
	reads  = 0x20 | 0x40 | 0x800 | 0x1000 | 0x2000 | 0x4000
	stages = 0x800 | 0x1000 | 0x4000
)

// recorder collects the calls of a command buffer and makes them many at a time.
type recorder struct {
	commands *commands
	frame    *hostcall.Frame
	barrier  hostcall.Block
	calls    []hostcall.Call
}

// callsAtOnce is the number of calls after which the recorder makes them.
const callsAtOnce = 20

func (r *recorder) add(name string, args ...uint64) {
	r.calls = append(r.calls, hostcall.Call{Function: r.commands.device.functions[name],
		Args: append([]uint64{r.commands.handle}, args...)})
}

func (r *recorder) flush() error {
	_, err := r.frame.Do(r.calls)
	r.calls = r.calls[:0]
	return err
}

// copiesAtOnce returns how many of the first steps are copies that one command can make: between
// the same two buffers, to ascending ranges that do not overlap.
func copiesAtOnce(steps []any) (n int) {
	var last device.Copy
	for _, s := range steps {
		c, ok := s.(device.Copy)
		if !ok || c.From.Buffer == c.To.Buffer || n > 0 && (c.From.Buffer != last.From.Buffer ||
			c.To.Buffer != last.To.Buffer || c.To.Offset < last.To.Offset+last.Bytes) {
			break
		}
		n, last = n+1, c
	}
	return n
}

// step adds a step, or several copies that one command can make, and a barrier.
func (r *recorder) step(steps []any) error {
	switch s := steps[0].(type) {
	case device.Launch:
		words := s.Arguments(func(b device.Buffer) uint64 { return b.(*buffer).address })
		const bindCompute = 1
		r.add("vkCmdBindPipeline", bindCompute, s.Program.(*program).pipeline)
		if len(words) > 0 {
			r.add("vkCmdPushConstants", r.commands.device.layout, stageCompute, 0, uint64(4*len(words)),
				r.frame.Words(words).Addr())
		}
		r.add("vkCmdDispatch", uint64(s.Groups[0]), uint64(s.Groups[1]), uint64(s.Groups[2]))
	case device.Copy:
		var regions []uint32
		for _, each := range steps {
			c := each.(device.Copy)
			for _, word := range []uint64{c.From.Offset, c.To.Offset, c.Bytes} {
				regions = append(regions, uint32(word), uint32(word>>32))
			}
		}
		r.add("vkCmdCopyBuffer", s.From.Buffer.(*buffer).handle, s.To.Buffer.(*buffer).handle, uint64(len(steps)),
			r.frame.Words(regions).Addr())
	case fill:
		const whole = 1<<64 - 1
		r.add("vkCmdFillBuffer", s.buffer.handle, 0, whole, 0)
	}
	r.add("vkCmdPipelineBarrier", stages, stages, 0, 1, r.barrier.Addr(), 0, 0, 0, 0)
	if len(r.calls) < callsAtOnce {
		return nil
	}
	return r.flush()
}

// Free releases the command buffer.
func (c *commands) Free() error {
	d := c.device
	if d.Process.Err() != nil {
		return nil
	}
	return d.With(d.Main, func(f *hostcall.Frame) error {
		return d.functions.void(f, "vkFreeCommandBuffers", d.handle, d.pool, 1, f.Struct(c.handle).Addr())
	})
}

// Submit submits the commands; the timeline has the value of the ticket when they are complete.
func (d *logicalDevice) Submit(c device.Commands) (device.Ticket, error) {
	return d.Queue.Submit(func(t device.Ticket) error {
		err := d.With(d.Main, func(f *hostcall.Frame) error {
			timeline := f.Struct(1000207003, uint64(0), 0, uint64(0), 1, f.Struct(uint64(t)))
			info := f.Struct(4, timeline, 0, uint64(0), uint64(0), 1, f.Struct(c.(*commands).handle), 1,
				f.Struct(d.timeline))
			return d.functions.call(f, "vkQueueSubmit", d.queue, 1, info.Addr(), 0)
		})
		if r, ok := errors.AsType[result](err); ok && r.code == deviceLost {
			return d.Lose(err)
		}
		return err
	})
}
