package device

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/devgen/interp"
)

// Verify runs a kernel on the device and in the interpreter and returns an error that names the
// first difference if a word of a buffer differs. buffers has the contents of the bindings before
// the run and those of the interpreter's run after it.
func Verify(ctx context.Context, d Device, k *devgen.Kernel, groups [3]int, buffers [][]byte, push []uint32) error {
	program, err := d.Compile(k)
	if err != nil {
		return err
	}
	return errors.Join(VerifyProgram(ctx, d, program, groups, buffers, push), program.Free())
}

// VerifyProgram is Verify for a kernel that is compiled. Results that differ give a *Mismatch.
func VerifyProgram(ctx context.Context, d Device, p Program, groups [3]int, buffers [][]byte, push []uint32) error {
	k := p.Kernel()
	got, err := runProgram(ctx, d, p, groups, buffers, push)
	if err != nil {
		return err
	}
	if err := interp.Run(k, groups, buffers, push); err != nil {
		return err
	}
	for i, want := range buffers {
		if m := compare(got[i], want); m != nil {
			m.Kernel, m.Binding = k.Name, k.Bindings[i].Name
			return m
		}
	}
	return nil
}

func compare(got, want []byte) *Mismatch {
	m := Mismatch{All: len(want) / 4}
	for w := range m.All {
		g, x := binary.LittleEndian.Uint32(got[4*w:]), binary.LittleEndian.Uint32(want[4*w:])
		if g == x {
			continue
		}
		if m.Words == 0 {
			m.Word, m.Got, m.Want = w, g, x
		}
		m.Words++
		m.Distance = max(m.Distance, distance(math.Float32frombits(g), math.Float32frombits(x)))
	}
	if m.Words == 0 {
		return nil
	}
	return &m
}

// distance returns the difference of two numbers, divided by the larger one if that is above 1. It
// is infinite if one is not finite.
func distance(x, y float32) float64 {
	a, b := float64(x), float64(y)
	d := math.Abs(a-b) / max(1, math.Abs(a), math.Abs(b))
	if math.IsNaN(d) {
		return math.Inf(1)
	}
	return d
}

// Run compiles a kernel, runs it once on copies of the buffers in device memory and returns the
// contents of the buffers after the run.
func Run(
	ctx context.Context, d Device, k *devgen.Kernel, groups [3]int, buffers [][]byte, push []uint32,
) (after [][]byte, err error) {
	program, err := d.Compile(k)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, program.Free()) }()
	return runProgram(ctx, d, program, groups, buffers, push)
}

// runProgram is Run for a kernel that is compiled.
func runProgram(
	ctx context.Context, d Device, program Program, groups [3]int, buffers [][]byte, push []uint32,
) (after [][]byte, err error) {
	launch := Launch{Program: program, Groups: groups, Push: push}
	for _, data := range buffers {
		b, err := d.Alloc(uint64(len(data)), DeviceLocal)
		if err != nil {
			return nil, errors.Join(err, freeAll(launch.Buffers))
		}
		launch.Buffers = append(launch.Buffers, Slice{Buffer: b})
	}
	defer func() { err = errors.Join(err, freeAll(launch.Buffers)) }()
	for i, data := range buffers {
		if err := d.Write(launch.Buffers[i].Buffer, 0, data); err != nil {
			return nil, err
		}
	}
	if err := RunOnce(ctx, d, launch); err != nil {
		return nil, err
	}
	for i, data := range buffers {
		copied := make([]byte, len(data))
		if err := d.Read(launch.Buffers[i].Buffer, 0, copied); err != nil {
			return nil, err
		}
		after = append(after, copied)
	}
	return after, nil
}

func freeAll(buffers []Slice) error {
	var errs []error
	for _, s := range buffers {
		errs = append(errs, s.Buffer.Free())
	}
	return errors.Join(errs...)
}

// RunOnce records steps, submits them and waits until they are complete.
func RunOnce(ctx context.Context, d Device, steps ...Step) error {
	commands, err := d.Record(steps...)
	if err != nil {
		return err
	}
	return errors.Join(SubmitAndWait(ctx, d, commands), commands.Free())
}

// SubmitAndWait submits commands and returns when they are complete or the device is lost, so that
// the caller may free them and their buffers. If ctx ends before, the error includes that of ctx.
func SubmitAndWait(ctx context.Context, d Device, c Commands) error {
	ticket, err := d.Submit(c)
	if err != nil {
		return err
	}
	if err = d.Wait(ctx, ticket); err == nil || d.Err() != nil {
		return err
	}
	return errors.Join(err, d.Wait(context.WithoutCancel(ctx), ticket))
}
