package offload

import (
	"testing"

	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
)

// countingDevice counts calls that take a round trip to the process of a driver.
type countingDevice struct {
	device.Device
	infos int
}

func (d *countingDevice) Info() device.Info {
	d.infos++
	return d.Device.Info()
}

// TestNoInfoPerForward checks that forwards do not ask the device for its properties, which calls
// the driver.
func TestNoInfoPerForward(t *testing.T) {
	dev := &countingDevice{Device: sim.New(sim.Config{Mode: sim.Timed})}
	t.Cleanup(func() { dev.Close() })
	f := testFile(t, "llama", true)
	g := open(t, f, testPlan(t, f, "int8"), dev)
	chunks := func() {
		g.feed(testTokens(20, 331), true)
		g.feed(testTokens(1, 331), true)
	}
	chunks() // compiles kernels
	before := dev.infos
	chunks()
	if dev.infos != before {
		t.Errorf("two forwards asked the device %d times for its properties", dev.infos-before)
	}
}
