package devicetest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"sandwich/runtime/device"
)

func testHostVisible(t *testing.T, d device.Device) {
	b := allocHost(t, d, device.HostVisible, d.Info().HostVisible)
	if b == nil {
		return
	}
	testHost(t, d, b)
	if err := b.Free(); err != nil {
		t.Error(err)
	}
}

// testShared checks that device and host see the same memory, and that the host keeps it until it
// is freed, after the device was closed.
func testShared(t *testing.T, d device.Device) {
	b := allocHost(t, d, device.Shared, d.Info().Sharing != device.NotShared)
	if b == nil {
		return
	}
	testHost(t, d, b)
	freed := allocHost(t, d, device.Shared, true)
	if err := freed.Free(); err != nil {
		t.Error(err)
	}
	want := bytes.Clone(b.Host())
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(b.Host(), want) {
		t.Error("the memory changed when the device was closed")
	}
	b.Host()[4095]++
	for range 2 {
		if err := b.Free(); err != nil {
			t.Errorf("Free: %v", err)
		}
	}
}

// allocHost allocates memory that the host sees, or checks that the device refuses it and returns
// nil.
func allocHost(t *testing.T, d device.Device, usage device.Usage, has bool) device.Buffer {
	t.Helper()
	b, err := d.Alloc(4096, usage)
	switch {
	case err == nil && !has:
		t.Error("a buffer was allocated that the device does not have")
	case err != nil && has:
		t.Fatal(err)
	case err == nil && len(b.Host()) != 4096:
		t.Fatalf("the host sees %d bytes", len(b.Host()))
	}
	return b
}

// testHost runs a kernel on memory that the host writes and reads.
func testHost(t *testing.T, d device.Device, b device.Buffer) {
	t.Helper()
	program, err := d.Compile(addKernel(t))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1024 {
		binary.LittleEndian.PutUint32(b.Host()[4*i:], uint32(i))
	}
	launch := device.Launch{Program: program, Groups: [3]int{16, 1, 1},
		Buffers: []device.Slice{{Buffer: b}}, Push: []uint32{5}}
	if err := device.RunOnce(t.Context(), d, launch); err != nil {
		t.Fatal(err)
	}
	for i := range 1024 {
		if got := binary.LittleEndian.Uint32(b.Host()[4*i:]); got != uint32(i+5) {
			t.Fatalf("word %d is %d", i, got)
		}
	}
	wantBuffer(t, d, b, b.Host()[:4096])
	testRepeated(t, d, b, launch)
}

// testRepeated checks that commands that are submitted several times copy what the host has written
// since, and that the host sees the results.
func testRepeated(t *testing.T, d device.Device, b device.Buffer, launch device.Launch) {
	t.Helper()
	local := alloc(t, d, make([]byte, 4096))
	launch.Buffers = []device.Slice{{Buffer: local}}
	commands, err := d.Record(
		device.Copy{To: device.Slice{Buffer: local}, From: device.Slice{Buffer: b}, Bytes: 2048},
		launch,
		device.Copy{To: device.Slice{Buffer: b, Offset: 2048}, From: device.Slice{Buffer: local}, Bytes: 2048})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 4 {
		for i := range 512 {
			binary.LittleEndian.PutUint32(b.Host()[4*i:], uint32(1000*round+i))
		}
		ticket, err := d.Submit(commands)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Wait(t.Context(), ticket); err != nil {
			t.Fatal(err)
		}
		for i := range 512 {
			if got := binary.LittleEndian.Uint32(b.Host()[2048+4*i:]); got != uint32(1000*round+i+5) {
				t.Fatalf("submission %d: word %d is %d", round, i, got)
			}
		}
	}
	if err := errors.Join(commands.Free(), local.Free()); err != nil {
		t.Error(err)
	}
}
