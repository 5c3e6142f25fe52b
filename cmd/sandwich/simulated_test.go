package main

import (
	"context"
	"errors"
	"os"

	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
)

// simulated is a driver with two simulated devices, which compute exactly; the second one cannot be
// opened.
type simulated struct{}

func (simulated) List(context.Context) ([]device.Info, error) {
	one := sim.New(sim.Config{})
	defer one.Close()
	return []device.Info{one.Info(), one.Info()}, nil
}

func (simulated) Open(_ context.Context, index int) (device.Device, error) {
	if index != 0 {
		return nil, errors.New("the simulated device cannot be opened")
	}
	return sim.New(sim.Config{}), nil
}

// registerSimulated registers the driver sim if the environment asks for it.
func registerSimulated() {
	if os.Getenv("SIMULATED_DEVICES") != "" {
		device.Register("sim", simulated{})
	}
}
