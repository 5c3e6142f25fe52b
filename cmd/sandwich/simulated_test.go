package main

import (
	"context"
	"errors"
	"os"

	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
)

// simulated is a driver with three simulated devices. The second one cannot be opened, and the
// third one reports an inexact class.
type simulated struct{}

func (simulated) List(context.Context) ([]device.Info, error) {
	one := sim.New(sim.Config{})
	defer one.Close()
	return []device.Info{one.Info(), one.Info(), one.Info()}, nil
}

func (simulated) Open(_ context.Context, index int) (device.Device, error) {
	switch index {
	case 1:
		return nil, errors.New("the simulated device cannot be opened")
	case 2:
		return sim.New(sim.Config{Inexact: 1 << device.Division}), nil
	}
	return sim.New(sim.Config{}), nil
}

// registerSimulated registers the driver sim if the environment asks for it.
func registerSimulated() {
	if os.Getenv("SIMULATED_DEVICES") != "" {
		device.Register("sim", simulated{})
	}
}
