package main

import (
	"context"
	"errors"
	"os"
	"slices"

	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
)

// simulated is a driver with simulated devices. The second one cannot be opened, and the third one
// reports an inexact class. The next three use the memory of the cores: imported, exported and by
// copies. The last one has little memory.
type simulated struct{}

func (simulated) List(context.Context) ([]device.Info, error) {
	one := sim.New(sim.Config{})
	defer one.Close()
	return slices.Repeat([]device.Info{one.Info()}, 7), nil
}

func (simulated) Open(_ context.Context, index int) (device.Device, error) {
	switch index {
	case 1:
		return nil, errors.New("the simulated device cannot be opened")
	case 2:
		return sim.New(sim.Config{Inexact: 1 << device.Division}), nil
	case 3:
		return sim.New(sim.Config{Unified: true, Sharing: device.Imported}), nil
	case 4:
		return sim.New(sim.Config{Unified: true, Sharing: device.Exported}), nil
	case 5:
		return sim.New(sim.Config{Unified: true}), nil
	case 6:
		return sim.New(sim.Config{MemoryBytes: 1 << 15}), nil
	}
	return sim.New(sim.Config{}), nil
}

// registerSimulated registers the driver sim if the environment asks for it.
func registerSimulated() {
	if os.Getenv("SIMULATED_DEVICES") != "" {
		device.Register("sim", simulated{})
	}
}
