package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"sandwich/microkernel/devgen"
	"sandwich/runtime/device"
	"sandwich/runtime/device/devicetest"
)

func TestExact(t *testing.T) {
	for _, sharing := range []device.Sharing{device.NotShared, device.Imported, device.Exported} {
		devicetest.Run(t, func(*testing.T) device.Device {
			return New(Config{MemoryBytes: 1 << 30, Sharing: sharing})
		})
	}
}

func kernel(t *testing.T) *devgen.Kernel {
	b := devgen.NewBuilder("store", 64)
	to := b.Binding("to", devgen.Write)
	b.Store(to, b.Builtin(devgen.LocalIndex), b.U(3))
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestTimed checks the simulated time of each call and submission, and that no kernel is computed.
func TestTimed(t *testing.T) {
	var mu sync.Mutex
	var slept []time.Duration
	d := New(Config{Mode: Timed, Compile: 7, Launch: 5, CopyBytesPerS: 1e9,
		KernelDuration: func(k *devgen.Kernel, groups [3]int, _ []uint32) time.Duration {
			return time.Duration(k.Size * groups[0])
		},
		Sleep: func(d time.Duration, _ <-chan struct{}) error {
			mu.Lock()
			defer mu.Unlock()
			slept = append(slept, d)
			return nil
		}})
	defer func() { _ = d.Close() }()
	program, err := d.Compile(kernel(t))
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Alloc(256, device.DeviceLocal)
	if err != nil {
		t.Fatal(err)
	}
	s := device.Slice{Buffer: b}
	if err := device.RunOnce(t.Context(), d,
		device.Launch{Program: program, Groups: [3]int{3, 1, 1}, Buffers: []device.Slice{s}},
		device.Copy{To: s, From: s, Bytes: 100}); err != nil {
		t.Fatal(err)
	}
	word := make([]byte, 4)
	if err := d.Read(b, 0, word); err != nil || binary.LittleEndian.Uint32(word) != 0 {
		t.Errorf("the kernel was computed: %d: %v", word, err)
	}
	if want := []time.Duration{7, 5 + 192 + 100, 4}; !slices.Equal(slept, want) {
		t.Errorf("slept %v, want %v", slept, want)
	}
}

// TestTimedByWallClock checks that submissions made at once end one after the other.
func TestTimedByWallClock(t *testing.T) {
	const each = 2 * time.Millisecond
	d := New(Config{Mode: Timed, Launch: each})
	defer func() { _ = d.Close() }()
	b, err := d.Alloc(256, device.DeviceLocal)
	if err != nil {
		t.Fatal(err)
	}
	commands, err := d.Record(device.Copy{To: device.Slice{Buffer: b}, From: device.Slice{Buffer: b}, Bytes: 4})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range 3 {
		ticket, err := d.Submit(commands)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := d.Wait(t.Context(), ticket); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took < each*time.Duration(ticket) {
				t.Errorf("submission %d ends after %v", ticket, took)
			}
		}()
	}
}

// TestRoofline checks the predicted time of kernels.
func TestRoofline(t *testing.T) {
	r := Roofline{FLOPs: 1e9, Bandwidth: 1e6, WeightBytes: 0.5, Other: 3}
	product := &devgen.Kernel{Push: []string{"k", "x", "m", "n"}}
	for _, c := range []struct {
		kernel *devgen.Kernel
		push   []uint32
		want   time.Duration
	}{
		{product, []uint32{100, 9, 50, 10}, 500 * time.Microsecond}, // bound by memory
		{product, []uint32{100, 9, 500, 10}, time.Millisecond},      // bound by arithmetic
		{&devgen.Kernel{Push: []string{"n"}}, []uint32{100}, 3},
	} {
		if got := r.KernelDuration(c.kernel, [3]int{1, 1, 1}, c.push); got != c.want {
			t.Errorf("a product of %v takes %v, want %v", c.push, got, c.want)
		}
	}
}

// TestFaults checks each fault of a submission.
func TestFaults(t *testing.T) {
	for name, fault := range map[string]Fault{"crash": Crash, "stall": Stall} {
		t.Run(name, func(t *testing.T) {
			d := New(Config{Fault: func(n device.Ticket) Fault {
				if n == 2 {
					return fault
				}
				return None
			}})
			program, err := d.Compile(kernel(t))
			if err != nil {
				t.Fatal(err)
			}
			b, err := d.Alloc(256, device.DeviceLocal)
			if err != nil {
				t.Fatal(err)
			}
			launch := device.Launch{Program: program, Groups: [3]int{1, 1, 1}, Buffers: []device.Slice{{Buffer: b}}}
			commands, err := d.Record(launch)
			if err != nil {
				t.Fatal(err)
			}
			if err := device.RunOnce(t.Context(), d, launch); err != nil {
				t.Fatal(err)
			}
			ticket, err := d.Submit(commands)
			if err != nil {
				t.Fatal(err)
			}
			if fault == Stall {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				if err := d.Wait(ctx, ticket); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Wait: %v", err)
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := d.Wait(t.Context(), ticket); !errors.Is(err, device.ErrLost) || d.Reached(ticket) {
				t.Errorf("Wait: %v", err)
			}
			devicetest.WantLost(t, d, launch, commands, b)
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMemory checks the limit and that freed memory counts once.
func TestMemory(t *testing.T) {
	d := New(Config{MemoryBytes: 100})
	defer func() { _ = d.Close() }()
	b, err := d.Alloc(60, device.DeviceLocal)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Alloc(41, device.DeviceLocal); !errors.Is(err, device.ErrMemory) {
		t.Errorf("41 of 40 bytes: %v", err)
	}
	_, _ = b.Free(), b.Free()
	if free := d.Info().FreeBytes; free != 100 {
		t.Errorf("%d bytes free", free)
	}
}

// TestSharedMemory checks that exported memory counts as the device's, that imported memory does
// not, and that refused buffers are not counted.
func TestSharedMemory(t *testing.T) {
	refuse := false
	for sharing, want := range map[device.Sharing]uint64{device.Imported: 1000, device.Exported: 960} {
		d := New(Config{MemoryBytes: 1000, Sharing: sharing, RefuseShared: func(uint64) error {
			if refuse {
				return errors.New("refused")
			}
			return nil
		}})
		b, err := d.Alloc(40, device.Shared)
		if err != nil {
			t.Fatal(err)
		}
		if free := d.Info().FreeBytes; free != want {
			t.Errorf("%s: %d bytes free, want %d", sharing, free, want)
		}
		refuse = true
		if _, err := d.Alloc(40, device.Shared); err == nil || d.Info().FreeBytes != want {
			t.Errorf("%s: a refused buffer: %v, %d bytes free", sharing, err, d.Info().FreeBytes)
		}
		refuse = false
		if err := errors.Join(d.Close(), b.Free()); err != nil || d.Info().FreeBytes != 1000 {
			t.Errorf("%s: %v, %d bytes free", sharing, err, d.Info().FreeBytes)
		}
	}
}

// TestNaNInSharedMemory checks that the fault changes only the words that a kernel writes.
func TestNaNInSharedMemory(t *testing.T) {
	d := New(Config{Sharing: device.Imported, Fault: func(device.Ticket) Fault { return NaN }})
	defer func() { _ = d.Close() }()
	b, err := d.Alloc(4*80, device.Shared)
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(b.Host()[4*79:], 5)
	program, err := d.Compile(kernel(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second run writes what the memory has
		launch := device.Launch{Program: program, Groups: [3]int{1, 1, 1}, Buffers: []device.Slice{{Buffer: b}}}
		if err := device.RunOnce(t.Context(), d, launch); err != nil {
			t.Fatal(err)
		}
		for i := range 80 {
			want := map[bool]uint32{true: 1<<32 - 1, false: 0}[i < 64]
			if i == 79 {
				want = 5
			}
			if got := binary.LittleEndian.Uint32(b.Host()[4*i:]); got != want {
				t.Fatalf("word %d is %#x, want %#x", i, got, want)
			}
		}
	}
	if err := b.Free(); err != nil {
		t.Error(err)
	}
}

// TestTraffic checks that a device reads the memory of its kernels, also when it cannot keep its
// rate, and stops when it is closed.
func TestTraffic(t *testing.T) {
	r := Roofline{FLOPs: 1e15, Bandwidth: 1e15, WeightBytes: 1}
	push := []uint32{2, 1000, 3000}
	k := &devgen.Kernel{Push: []string{"m", "n", "k"}}
	if got := r.KernelBytes(k, [3]int{}, push); got != 3e6 {
		t.Errorf("%g bytes of a product, want 3e6", got)
	}
	if got := r.KernelBytes(&devgen.Kernel{Push: []string{"n"}}, [3]int{}, []uint32{7}); got != 0 {
		t.Errorf("%g bytes of a sum of rows, want 0", got)
	}
	var m traffic
	lost := make(chan struct{})
	if err := m.read(3e6, time.Now(), lost); err != nil || m.sum == 0 {
		t.Errorf("read: %v, sum %d", err, m.sum)
	}
	if at := m.at; at < 3e6/8 || at > 3e6/8+trafficPart {
		t.Errorf("%d words were read, want %d", at, int(3e6/8))
	}
	close(lost)
	if err := m.read(1e15, time.Now().Add(time.Hour), lost); !errors.Is(err, device.ErrLost) {
		t.Errorf("a closed device reads: %v", err)
	}
}
