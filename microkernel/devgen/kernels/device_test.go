package kernels

import (
	"context"
	"fmt"
	"testing"

	"sandwich/runtime/device"
	_ "sandwich/runtime/device/cuda"
	_ "sandwich/runtime/device/vulkan"
)

// opened has the devices of this host by ID.
var opened = map[string]device.Device{}

// TestMain adds each device of this host to the runners, so that every test of a kernel compares
// the device's results as well.
func TestMain(m *testing.M) {
	ctx := context.Background()
	for _, f := range device.List(ctx) {
		if f.Err != nil {
			fmt.Printf("skipped: kernels on %s: %v\n", f.ID, f.Err)
			continue
		}
		d, err := device.Open(ctx, f.ID)
		if err != nil {
			fmt.Printf("skipped: kernels on %s: %v\n", f.ID, err)
			continue
		}
		defer func() { _ = d.Close() }()
		opened[f.ID] = d
		runners = append(runners, runner{f.ID + " " + f.Info.Name, func(c call, buffers [][]byte) error {
			if c.kernel.NeedsMatrixUnit() && !d.Info().MatrixUnit {
				return errSkipped
			}
			after, err := device.Run(ctx, d, c.kernel, c.grid, buffers, c.push)
			for i := range after {
				copy(buffers[i], after[i])
			}
			return err
		}})
	}
	m.Run()
}
