package vulkan

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/devgen/spirv"
	"sandwich/runtime/device"
	"sandwich/runtime/device/codecache"
	"sandwich/runtime/device/hostcall"
)

// logicalDevice is an open Vulkan device.
type logicalDevice struct {
	*instance
	physical *physical
	handle   uint64
	queue    uint64
	pool     uint64 // command pool; used on the main thread only
	layout   uint64 // of pipelines: push constants
	timeline uint64 // semaphore whose value is the last complete ticket

	codes *codecache.Store // compiled kernels on disk; nil: none

	spirv           spirv.Options
	exact, repaired device.Exactness

	stageMu sync.Mutex
	stage   *stage
}

var deviceFunctions = []string{"vkGetDeviceQueue", "vkCreateCommandPool", "vkCreatePipelineLayout", "vkCreateSemaphore",
	"vkCreateBuffer", "vkDestroyBuffer", "vkGetBufferMemoryRequirements", "vkAllocateMemory", "vkFreeMemory",
	"vkBindBufferMemory", "vkGetBufferDeviceAddress", "vkMapMemory", "vkCreateShaderModule", "vkDestroyShaderModule",
	"vkCreateComputePipelines", "vkCreatePipelineCache", "vkGetPipelineCacheData", "vkDestroyPipelineCache",
	"vkDestroyPipeline", "vkAllocateCommandBuffers", "vkFreeCommandBuffers",
	"vkBeginCommandBuffer", "vkEndCommandBuffer", "vkCmdBindPipeline", "vkCmdPushConstants", "vkCmdDispatch",
	"vkCmdPipelineBarrier", "vkCmdCopyBuffer", "vkCmdFillBuffer", "vkQueueSubmit", "vkWaitSemaphores"}

// cpuStall is the least stall limit of a driver that computes on the CPU, where other processes may
// use the same cores.
const cpuStall = 2 * time.Minute

// open creates the device of a physical device.
func (in *instance) open(p *physical) (*logicalDevice, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	d := &logicalDevice{instance: in, physical: p}
	if err := in.With(in.Main, d.create); err != nil {
		return nil, err
	}
	if p.kind == kindCPU {
		in.Stall = max(in.Stall, cpuStall)
	}
	in.Serve(d.await)
	var err error
	if d.stage, err = d.newStage(); err != nil {
		return d, err
	}
	return d, d.checkExport()
}

// checkExport clears the handle type of exported buffers if this process cannot map them.
func (d *logicalDevice) checkExport() error {
	if d.physical.sharing() != device.Exported {
		return nil
	}
	b, err := d.newBuffer(1<<16, fromExport)
	if err != nil {
		d.physical.exports = 0
		return d.Err()
	}
	return b.Free()
}

func (d *logicalDevice) create(f *hostcall.Frame) error {
	p, fs := d.physical, d.functions
	chain := newFeatures(f)
	for _, x := range needed {
		chain.enable(x)
	}
	if p.float64 {
		chain.enable(featureFloat64)
	}
	extensions, names := 0, f.Alloc(3*8)
	for _, e := range []struct {
		name string
		use  bool
	}{{importExtension, p.importsHost}, {fdExtension, p.exports != 0}, {dmaBufExtension, p.exports == dmaBuf}} {
		if e.use {
			names.PutU64(8*extensions, f.String(e.name).Addr())
			extensions++
		}
	}
	queue := f.Struct(2, uint64(0), 0, p.family, 1, f.Struct(float32(1)))
	info := f.Struct(3, chain[0], 0, 1, queue, 0, uint64(0), extensions, names, uint64(0))
	out := f.Alloc(8)
	if err := fs.call(f, "vkCreateDevice", p.handle, info.Addr(), 0, out.Addr()); err != nil {
		return err
	}
	d.handle = out.U64(0)
	if err := fs.lookUp(f, fs["vkGetDeviceProcAddr"], d.handle, deviceFunctions...); err != nil {
		return err
	}
	if p.importsHost {
		err := fs.lookUp(f, fs["vkGetDeviceProcAddr"], d.handle, "vkGetMemoryHostPointerPropertiesEXT")
		if err != nil {
			return err
		}
	}
	if p.exports != 0 {
		if err := fs.lookUp(f, fs["vkGetDeviceProcAddr"], d.handle, "vkGetMemoryFdKHR"); err != nil {
			return err
		}
	}
	if err := fs.void(f, "vkGetDeviceQueue", d.handle, uint64(p.family), 0, out.Addr()); err != nil {
		return err
	}
	d.queue = out.U64(0)
	ranges := f.Struct(stageCompute, 0, devgen.MaxArgumentBytes)
	timeline := f.Struct(1000207002, uint64(0), 1, uint64(0))
	for _, c := range []struct {
		call string
		info hostcall.Block
		to   *uint64
	}{
		{"vkCreateCommandPool", f.Struct(39, uint64(0), 0, p.family), &d.pool},
		{"vkCreatePipelineLayout", f.Struct(30, uint64(0), 0, 0, uint64(0), 1, ranges), &d.layout},
		{"vkCreateSemaphore", f.Struct(9, timeline, 0), &d.timeline},
	} {
		if err := fs.call(f, c.call, d.handle, c.info.Addr(), 0, out.Addr()); err != nil {
			return err
		}
		*c.to = out.U64(0)
	}
	return nil
}

// Info describes the device.
func (d *logicalDevice) Info() device.Info {
	i := d.physical.info()
	i.Exact, i.Repaired = d.exact, d.repaired
	_ = d.With(d.Main, func(f *hostcall.Frame) (err error) { // on an error the free memory is not known
		i.FreeBytes, err = d.physical.free(f, d.functions)
		return err
	})
	return i
}

// Reached reports whether a submission is complete.
func (d *logicalDevice) Reached(t device.Ticket) bool { return d.Queue.Reached(t) }

// Wait waits for a submission.
func (d *logicalDevice) Wait(ctx context.Context, t device.Ticket) error { return d.Queue.Wait(ctx, t) }

// Lost returns a channel that is closed when the device is lost or closed.
func (d *logicalDevice) Lost() <-chan struct{} { return d.Queue.Lost() }

// Err returns why the device is lost, or nil.
func (d *logicalDevice) Err() error { return d.Queue.Err() }

// await blocks until the timeline has the value of a ticket. The queue calls it.
func (d *logicalDevice) await(t device.Ticket) error {
	began := time.Now()
	for {
		err := d.With(d.Waiter, func(f *hostcall.Frame) error {
			values := f.Struct(uint64(t))
			semaphores := f.Struct(d.timeline)
			info := f.Struct(1000207004, uint64(0), 0, 1, semaphores, values)
			patience := min(time.Second, d.Stall)
			f.Limit = patience + d.Stall
			return d.functions.call(f, "vkWaitSemaphores", d.handle, info.Addr(), uint64(patience))
		})
		r, ok := errors.AsType[result](err)
		switch {
		case !ok:
			return err
		case r.code != timeout:
			return d.Lose(err)
		case time.Since(began) >= d.Stall:
			return d.Lose(fmt.Errorf("a submission did not complete within %v", d.Stall))
		}
	}
}
