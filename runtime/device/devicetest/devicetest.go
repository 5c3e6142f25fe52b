// Package devicetest tests implementations of device.Device.
package devicetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"sandwich/microkernel/devgen"
	"sandwich/runtime/device"
)

// Run tests that a device fulfils the contract of [device.Device]. open opens a new device; Run
// closes it.
func Run(t *testing.T, open func(t *testing.T) device.Device) {
	for name, test := range map[string]func(*testing.T, device.Device){
		"memory":      testMemory,
		"host":        testHostVisible,
		"shared":      testShared,
		"kernels":     testKernels,
		"steps":       testSteps,
		"copies":      testCopies,
		"order":       testOrder,
		"refusals":    testRefusals,
		"cancelation": testCancelation,
		"close":       testClose,
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			test(t, d)
			if err := d.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

func random(n int) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// alloc allocates a buffer that is freed at the end of the test's device.
func alloc(t *testing.T, d device.Device, data []byte) device.Buffer {
	t.Helper()
	b, err := d.Alloc(uint64(len(data)), device.DeviceLocal)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write(b, 0, data); err != nil {
		t.Fatal(err)
	}
	return b
}

// wantBuffer checks the contents of a buffer.
func wantBuffer(t *testing.T, d device.Device, b device.Buffer, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if err := d.Read(b, 0, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the buffer has other contents")
	}
}

func testMemory(t *testing.T, d device.Device) {
	const size = 9<<20 + 40 // more than a driver may copy at once
	b, err := d.Alloc(size, device.DeviceLocal)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, size)
	wantBuffer(t, d, b, want)
	for _, c := range [][2]int{{0, size}, {4, 4}, {0, 0}, {3, 13}, {size - 5, 5}, {1 << 20, 5 << 20}} {
		data := random(c[1])
		copy(want[c[0]:], data)
		if err := d.Write(b, uint64(c[0]), data); err != nil {
			t.Fatalf("write of %d bytes at %d: %v", c[1], c[0], err)
		}
	}
	wantBuffer(t, d, b, want)
	part := make([]byte, 1001)
	if err := d.Read(b, 77, part); err != nil || !bytes.Equal(part, want[77:77+1001]) {
		t.Errorf("read of a part: %v", err)
	}
	if err := d.Write(b, size-3, make([]byte, 4)); err == nil {
		t.Error("a write past the end was accepted")
	}
	if err := d.Read(b, 1<<63, make([]byte, 4)); err == nil {
		t.Error("a read past the end was accepted")
	}
	if err := b.Free(); err != nil {
		t.Error(err)
	}
	if _, err := d.Alloc(1<<52, device.DeviceLocal); !errors.Is(err, device.ErrMemory) {
		t.Errorf("4 PiB: %v", err)
	}
	if _, err := d.Alloc(0, device.DeviceLocal); err == nil {
		t.Error("a buffer of 0 bytes was allocated")
	}
	wantAlive(t, d)
}

func wantAlive(t *testing.T, d device.Device) {
	t.Helper()
	if err := d.Err(); err != nil {
		t.Errorf("the device is lost: %v", err)
	}
}

// mustBuild returns the kernel of a builder.
func mustBuild(t *testing.T, b *devgen.Builder) *devgen.Kernel {
	t.Helper()
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// addKernel returns a kernel that adds a push word to each word of a buffer.
func addKernel(t *testing.T) *devgen.Kernel {
	b := devgen.NewBuilder("test_add", 64)
	to := b.Binding("to", devgen.ReadWrite)
	i := b.MulAdd(b.Builtin(devgen.GroupX), b.U(64), b.Builtin(devgen.LocalIndex))
	b.Store(to, i, b.Add(b.Load(to, i), b.Push("summand", devgen.U32)))
	return mustBuild(t, b)
}

// sumKernel returns a kernel that stores, for each workgroup of a grid of three dimensions, the sum
// of its 32 words of from by way of shared memory, plus its position in the grid.
func sumKernel(t *testing.T) *devgen.Kernel {
	b := devgen.NewBuilder("test_sum", 32)
	from, to := b.Binding("from", devgen.Read), b.Binding("to", devgen.Write)
	width, height := b.Push("width", devgen.U32), b.Push("height", devgen.U32)
	shared := b.Shared("part", 32)
	x, y, z := b.Builtin(devgen.GroupX), b.Builtin(devgen.GroupY), b.Builtin(devgen.GroupZ)
	group := b.MulAdd(b.MulAdd(z, height, y), width, x)
	local := b.Builtin(devgen.LocalIndex)
	b.StoreShared(shared, local, b.Load(from, b.MulAdd(group, b.U(32), local)))
	b.Barrier()
	b.If(b.Equal(local, b.U(0)), func() {
		sum := b.Var(b.MulAdd(x, b.U(1), b.Mul(y, b.U(100))))
		b.Range(b.U(32), func(i devgen.Value) { b.Set(sum, b.Add(b.Get(sum), b.LoadShared(shared, i))) })
		b.Store(to, group, b.Get(sum))
	})
	return mustBuild(t, b)
}

func testKernels(t *testing.T, d device.Device) {
	ctx := t.Context()
	buffers := [][]byte{random(50 * 256)}
	if err := device.Verify(ctx, d, addKernel(t), [3]int{50, 1, 1}, buffers, []uint32{7}); err != nil {
		t.Error(err)
	}
	buffers = [][]byte{random(3 * 5 * 2 * 128), make([]byte, 3*5*2*4)}
	if err := device.Verify(ctx, d, sumKernel(t), [3]int{3, 5, 2}, buffers, []uint32{3, 5}); err != nil {
		t.Error(err)
	}
	wantAlive(t, d)
}

func testSteps(t *testing.T, d device.Device) {
	program, err := d.Compile(addKernel(t))
	if err != nil {
		t.Fatal(err)
	}
	words := make([]byte, 1024)
	a, b := alloc(t, d, words), alloc(t, d, words)
	add := func(to device.Buffer, n uint32) device.Step {
		return device.Launch{Program: program, Groups: [3]int{2, 1, 1},
			Buffers: []device.Slice{{Buffer: to, Offset: 256}}, Push: []uint32{n}}
	}
	var steps []device.Step
	for range 20 {
		steps = append(steps, add(a, 1),
			device.Copy{To: device.Slice{Buffer: b}, From: device.Slice{Buffer: a}, Bytes: 1024},
			add(b, 100), device.Copy{To: device.Slice{Buffer: a, Offset: 4},
				From: device.Slice{Buffer: b, Offset: 4}, Bytes: 1020})
	}
	commands, err := d.Record(steps...)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		ticket, err := d.Submit(commands)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Wait(t.Context(), ticket); err != nil {
			t.Fatal(err)
		}
		if !d.Reached(ticket) {
			t.Error("a ticket is not reached after Wait")
		}
	}
	for i := 64; i < 64+128; i++ {
		binary.LittleEndian.PutUint32(words[4*i:], 3*20*101)
	}
	wantBuffer(t, d, a, words)
	if err := errors.Join(commands.Free(), program.Free(), a.Free(), b.Free()); err != nil {
		t.Error(err)
	}
}

// testOrder submits from several goroutines: every submission runs once, and tickets increase.
func testOrder(t *testing.T, d device.Device) {
	program, err := d.Compile(addKernel(t))
	if err != nil {
		t.Fatal(err)
	}
	b := alloc(t, d, make([]byte, 256))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			commands, err := d.Record(device.Launch{Program: program, Groups: [3]int{1, 1, 1},
				Buffers: []device.Slice{{Buffer: b}}, Push: []uint32{1}})
			if err != nil {
				t.Error(err)
				return
			}
			last := device.Ticket(0)
			for range 25 {
				ticket, err := d.Submit(commands)
				if err != nil || ticket <= last {
					t.Errorf("ticket %d after %d: %v", ticket, last, err)
					return
				}
				last = ticket
			}
			if err := d.Wait(t.Context(), last); err != nil {
				t.Error(err)
			}
			if err := commands.Free(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	want := make([]byte, 256)
	for i := range 64 {
		binary.LittleEndian.PutUint32(want[4*i:], 100)
	}
	wantBuffer(t, d, b, want)
}

// testRefusals checks that invalid steps are refused and do not lose the device.
func testRefusals(t *testing.T, d device.Device) {
	program, err := d.Compile(addKernel(t))
	if err != nil {
		t.Fatal(err)
	}
	b := alloc(t, d, make([]byte, 256))
	good := device.Launch{Program: program, Groups: [3]int{1, 1, 1},
		Buffers: []device.Slice{{Buffer: b}}, Push: []uint32{1}}
	for name, change := range map[string]func(*device.Launch){
		"no program":      func(l *device.Launch) { l.Program = nil },
		"no groups":       func(l *device.Launch) { l.Groups = [3]int{} },
		"too many groups": func(l *device.Launch) { l.Groups = [3]int{1, 1 << 16, 1} },
		"no push":         func(l *device.Launch) { l.Push = nil },
		"no buffer":       func(l *device.Launch) { l.Buffers = nil },
		"nil buffer":      func(l *device.Launch) { l.Buffers = []device.Slice{{}} },
		"odd offset":      func(l *device.Launch) { l.Buffers = []device.Slice{{Buffer: b, Offset: 8}} },
		"offset past end": func(l *device.Launch) { l.Buffers = []device.Slice{{Buffer: b, Offset: 256}} },
	} {
		bad := good
		change(&bad)
		if _, err := d.Record(good, bad); err == nil {
			t.Errorf("%s: recorded", name)
		}
	}
	s := device.Slice{Buffer: b}
	for _, c := range []device.Copy{{}, {To: s, From: s}, {To: s, From: s, Bytes: 260}, {To: s, From: s, Bytes: 6},
		{To: s, From: device.Slice{Buffer: b, Offset: 2}, Bytes: 4}, {To: s, Bytes: 4}} {
		if _, err := d.Record(c); err == nil {
			t.Errorf("recorded %+v", c)
		}
	}
	if _, err := d.Record(); err == nil {
		t.Error("recorded nothing")
	}
	if _, err := d.Compile(&devgen.Kernel{Name: "empty"}); !errors.Is(err, device.ErrRefused) {
		t.Errorf("an invalid kernel: %v", err)
	}
	wantAlive(t, d)
	if err := device.RunOnce(t.Context(), d, good); err != nil {
		t.Error(err)
	}
}

func testCancelation(t *testing.T, d device.Device) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Wait(ctx, 1<<40); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait: %v", err)
	}
	wantAlive(t, d)
}

// testClose checks that a closed device refuses every call.
func testClose(t *testing.T, d device.Device) {
	program, err := d.Compile(addKernel(t))
	if err != nil {
		t.Fatal(err)
	}
	b := alloc(t, d, make([]byte, 256))
	launch := device.Launch{Program: program, Groups: [3]int{1, 1, 1},
		Buffers: []device.Slice{{Buffer: b}}, Push: []uint32{1}}
	commands, err := d.Record(launch)
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error)
	go func() { waited <- d.Wait(context.WithoutCancel(t.Context()), 1<<40) }()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; !errors.Is(err, device.ErrLost) {
		t.Errorf("Wait: %v", err)
	}
	WantLost(t, d, launch, commands, b)
	_, _, _ = program.Free(), commands.Free(), b.Free() // must return
}

// WantLost checks that every call of a lost device returns an error that wraps ErrLost. The launch,
// the commands and the buffer were made before.
func WantLost(t *testing.T, d device.Device, l device.Launch, c device.Commands, b device.Buffer) {
	t.Helper()
	select {
	case <-d.Lost():
	default:
		t.Fatal("the channel of Lost is open")
	}
	_, alloc := d.Alloc(64, device.DeviceLocal)
	_, compile := d.Compile(l.Program.Kernel())
	_, submit := d.Submit(c)
	for call, err := range map[string]error{"Err": d.Err(), "Alloc": alloc, "Compile": compile, "Submit": submit,
		"Write": d.Write(b, 0, make([]byte, 4)), "Read": d.Read(b, 0, make([]byte, 4)),
		"Wait": d.Wait(t.Context(), 1<<40)} {
		if !errors.Is(err, device.ErrLost) {
			t.Errorf("%s: %v, want %v", call, err, device.ErrLost)
		}
	}
}
