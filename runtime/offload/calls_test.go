package offload

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen/kernels"
	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/kvcache"
)

// countingDevice counts calls that take a round trip to the process of a driver.
type countingDevice struct {
	device.Device
	infos, records int
}

func (d *countingDevice) Record(steps ...device.Step) (device.Commands, error) {
	d.records++
	return d.Device.Record(steps...)
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

// TestReusedCommands checks that decode steps of two sequences, which use the commands of earlier
// steps again, read their own positions and blocks and have the bits of the cores, also if they
// halt after each op. Segments of one op do not depend on measured times.
func TestReusedCommands(t *testing.T) {
	f := testFile(t, "llama", true)
	plan := testPlan(t, f, "int8")
	dev := &countingDevice{Device: sim.New(sim.Config{})}
	t.Cleanup(func() { dev.Close() })
	cores, both := open(t, f, plan, nil), open(t, f, plan, dev)
	rigs := []*rig{cores, both}
	type state struct {
		seq *kvcache.Sequence
		pos int
	}
	var others [2]state
	for i, g := range rigs {
		others[i].seq = g.cache.Open(kvcache.Salt{})
	}
	swap := func() {
		for i, g := range rigs {
			g.seq, g.pos, others[i] = others[i].seq, others[i].pos, state{g.seq, g.pos}
		}
	}
	for _, rows := range []int{testRows, kvcache.BlockTokens - 5 - testRows, 3} {
		if rows == 3 {
			swap()
		}
		tokens := testTokens(rows, 331)
		sameLogits(t, "prompt", both.feed(tokens, false), cores.feed(tokens, false))
	}
	for i, token := range testTokens(6, 331) { // in the last one the first sequence has a second block
		both.everyGap = i < 3
		before := dev.records
		for range 2 {
			swap()
			tokens := []int32{token}
			sameLogits(t, fmt.Sprintf("step %d at position %d", i, both.pos), both.feed(tokens, true),
				cores.feed(tokens, false))
		}
		if n := dev.records - before; i > 0 && both.everyGap && n > 0 {
			t.Errorf("step %d recorded %d segments again", i, n)
		}
	}
}

// TestRecordingsLimit checks that the number of kept commands is bounded and that all are freed.
func TestRecordingsLimit(t *testing.T) {
	freed := 0
	var r recordings
	for shape := range byte(3 * maxRecordings / 2) {
		if err := r.limit(); err != nil {
			t.Fatal(err)
		}
		r.keep([]byte{shape}, 0, 1, freeing{&freed})
	}
	if n := len(r.list); n != maxRecordings/2 || freed != maxRecordings || r.find([]byte{0}, 0, 1) != nil {
		t.Errorf("%d commands are kept and %d were freed", n, freed)
	}
	if err := r.free(); err != nil || freed != 3*maxRecordings/2 || len(r.list) != 0 {
		t.Errorf("%d were freed, %d are left: %v", freed, len(r.list), err)
	}
	r.keep([]byte{1}, 0, 1, freeing{&freed})
	if r.abandon(); len(r.list) != 0 || freed != 3*maxRecordings/2 {
		t.Errorf("abandon: %d are left, %d were freed", len(r.list), freed)
	}
}

// freeing is commands that count how many were freed.
type freeing struct{ freed *int }

func (f freeing) Free() error {
	*f.freed++
	return nil
}

// TestFinite checks infinities and NaN at each place of slices of even and odd length.
func TestFinite(t *testing.T) {
	inf := float32(math.Inf(1))
	for n := range 6 {
		for bad := -1; bad < n; bad++ {
			for _, v := range []float32{inf, -inf, float32(math.NaN())} {
				x := []float32{math.MaxFloat32, -math.MaxFloat32, 0, float32(math.Copysign(0, -1)), 1e-45, -1}[:n]
				if bad >= 0 {
					x[bad] = v
				}
				if finite(x) != (bad < 0) {
					t.Errorf("finite(%v) is %v", x, bad >= 0)
				}
			}
		}
	}
}

// TestRowFaults checks that faults in a decode step, whose keys and values are copied row by row
// and whose commands were used before, are errors.
func TestRowFaults(t *testing.T) {
	f := testFile(t, "llama", true)
	plan := testPlan(t, f, "int8")
	for _, fault := range []sim.Fault{sim.NaN, sim.Lie} {
		armed := sim.None
		dev := sim.New(sim.Config{Fault: func(device.Ticket) sim.Fault { return armed }})
		t.Cleanup(func() { dev.Close() })
		g := open(t, f, plan, dev)
		g.feed(testTokens(5, 331), true)
		g.everyGap = true
		g.feed([]int32{7}, true)
		g.describe([]int32{8})
		armed = fault
		if err := g.onDevice(); !errors.Is(err, ErrResult) {
			t.Errorf("fault %d: error %v, want %v", fault, err, ErrResult)
		}
		armed = sim.None
		if err := g.onDevice(); err != nil {
			t.Errorf("after fault %d: %v", fault, err)
		}
	}
}

// TestPutRow checks the places of keys and values against those of the cores, and that a number
// that is not finite is found.
func TestPutRow(t *testing.T) {
	const dim = 24
	layout := microkernel.KVLayout{HeadDim: dim, Elem: microkernel.KVF16}
	for _, position := range []int{0, 17, kvcache.BlockTokens - 1} {
		got, want := make([]byte, layout.KBytes()+layout.VBytes()), make([]byte, layout.KBytes()+layout.VBytes())
		var x [2 * dim]float32
		row := make([]byte, 4*(kernels.GatherKV{HeadDim: dim}).Words())
		for d := range x {
			x[d] = float32(1 + d)
			bits := math.Float32bits(x[d])
			binary.LittleEndian.PutUint16(row[2*d:], uint16((bits>>23-112)<<10|bits>>13&0x3FF)) // as float16
		}
		at := unsafe.Pointer(&want[0])
		microkernel.RefVec().StoreK(layout, at, position, &x[0], 1, 0)
		microkernel.RefVec().StoreV(layout, unsafe.Add(at, layout.KBytes()), position, &x[dim], 1, 0)
		if !putRow(got, dim, position, row) || !bytes.Equal(got, want) {
			t.Errorf("position %d: the block has other contents than that of the cores", position)
		}
		for d := range 2 * dim {
			bad := bytes.Clone(row)
			bad[2*d+1] = 0xFC // negative infinity, or NaN
			if putRow(got, dim, position, bad) {
				t.Errorf("position %d: element %d is not finite and was accepted", position, d)
			}
		}
	}
}
