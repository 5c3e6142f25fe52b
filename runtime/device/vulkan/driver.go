// Package vulkan drives devices through Vulkan 1.3. The loader, libvulkan.so.1, runs in a child
// process (package hostcall). Kernels are SPIR-V that addresses buffers by device addresses in push
// constants; there are no descriptors.
package vulkan

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"sandwich/runtime/device"
	"sandwich/runtime/device/codecache"
	"sandwich/runtime/device/installed"
	"sandwich/runtime/device/internal/remote"
)

func init() { device.Register("vulkan", driver{}) }

type driver struct {
	options       remote.Options
	withoutImport bool             // treat devices as if they could not import memory of the host
	codes         *codecache.Store // of tests; nil: that of codecache.Use
	withoutExport bool             // treat devices as if they could not export their memory
}

// Detect looks for the loader, a driver and a GPU.
func (driver) Detect() error { return installed.Host{}.Vulkan(loader) }

// List describes the physical devices. Each call starts a child process and ends it.
func (dr driver) List(ctx context.Context) ([]device.Info, error) {
	in, err := dr.start(ctx)
	if err != nil {
		return nil, err
	}
	var infos []device.Info
	for _, p := range in.physical {
		infos = append(infos, p.info())
	}
	return infos, in.Close()
}

// Open opens a physical device and tests its arithmetic. Where it is inexact, kernels are compiled
// with exact sequences instead, and the test is repeated.
func (dr driver) Open(ctx context.Context, index int) (device.Device, error) {
	in, err := dr.start(ctx)
	if err != nil {
		return nil, err
	}
	if index >= len(in.physical) {
		return nil, errors.Join(fmt.Errorf("there are %d Vulkan devices", len(in.physical)), in.Close())
	}
	p := in.physical[index]
	p.importsHost = p.importsHost && !dr.withoutImport
	if dr.withoutExport {
		p.exports = 0
	}
	d, err := in.open(p)
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	d.codes = cmp.Or(dr.codes, codecache.Current())
	if err := d.testArithmetic(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// start starts a process and creates an instance in it.
func (dr driver) start(ctx context.Context) (*instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := remote.Start(dr.options)
	if err != nil {
		return nil, err
	}
	in := &instance{Device: r}
	if err := in.create(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return in, nil
}

// testArithmetic sets the options of compilation so that as many classes as possible are exact.
func (d *logicalDevice) testArithmetic(ctx context.Context) error {
	d.spirv.KeepSubnormal = d.physical.keepsSubnormal
	native, err := device.SelfTest(ctx, d)
	if err != nil {
		return err
	}
	d.spirv.SoftFMA = d.physical.float64 && !(native.Has(device.FMA) && native.Has(device.SubnormalFMA))
	d.spirv.SoftDiv = !native.Has(device.Division)
	d.spirv.SoftSqrt = !native.Has(device.SquareRoot)
	d.exact = native
	if d.spirv.SoftFMA || d.spirv.SoftDiv || d.spirv.SoftSqrt {
		if d.exact, err = device.SelfTest(ctx, d); err != nil {
			return err
		}
	}
	d.repaired = d.exact &^ native
	return nil
}
