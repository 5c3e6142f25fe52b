package device_test

import (
	"context"
	"errors"
	"testing"

	"sandwich/microkernel/devgen"
	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
)

// TestSelfTest checks that a device that computes by the interpreter is exact.
func TestSelfTest(t *testing.T) {
	d := sim.New(sim.Config{})
	defer func() { _ = d.Close() }()
	if exact, err := device.SelfTest(t.Context(), d); err != nil || exact != device.AllExact {
		t.Errorf("exact: %v: %v", exact, err)
	}
}

// TestSelfTestFindsErrors checks that wrong results make classes inexact, and that a lost device
// and a canceled context are errors.
func TestSelfTestFindsErrors(t *testing.T) {
	for name, fault := range map[string]sim.Fault{"NaN": sim.NaN, "lie": sim.Lie} {
		d := sim.New(sim.Config{Fault: func(device.Ticket) sim.Fault { return fault }})
		if exact, err := device.SelfTest(t.Context(), d); err != nil || exact != 0 {
			t.Errorf("%s: exact: %v: %v", name, exact, err)
		}
		_ = d.Close()
	}
	d := sim.New(sim.Config{Refuse: func(k *devgen.Kernel) error {
		if k.Name == "probe_square_root" {
			return errors.New("no square root")
		}
		return nil
	}})
	if exact, err := device.SelfTest(t.Context(), d); err != nil || exact != device.AllExact&^(1<<device.SquareRoot) {
		t.Errorf("refused: exact: %v: %v", exact, err)
	}
	_ = d.Close()
	if _, err := device.SelfTest(t.Context(), d); !errors.Is(err, device.ErrLost) {
		t.Errorf("lost: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := device.SelfTest(ctx, sim.New(sim.Config{})); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestVerifyReportsMismatch checks what the error of different results says.
func TestVerifyReportsMismatch(t *testing.T) {
	b := devgen.NewBuilder("three", 8)
	b.Store(b.Binding("to", devgen.Write), b.Builtin(devgen.LocalIndex), b.U(3))
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	d := sim.New(sim.Config{Fault: func(device.Ticket) sim.Fault { return sim.NaN }})
	defer func() { _ = d.Close() }()
	err = device.Verify(t.Context(), d, k, [3]int{1, 1, 1}, [][]byte{make([]byte, 32)}, nil)
	const want = "kernel three: 8 of 8 words of to differ; word 0 is 0xffffffff, want 0x00000003"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
