package replay

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"sandwich/microkernel/devgen"
	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/phase"
	"sandwich/runtime/placement"
	"sandwich/runtime/sched"
)

const (
	placementChunk = 256
	kernelsOfModel = 48 // launches of a forward on a device
	kvBytes        = 64 // of a position
)

var placementSeed = flag.Uint64("placement-seed", 1, "seed of TestPlacementOfDrawnDevices")

// drawn is a machine of cores and one simulated device. Forwards take the time of their products or
// of reading the weights, whichever is longer, and that of attention.
type drawn struct {
	t        *testing.T
	row      [2]float64 // seconds of a row's products, on the cores and on the device
	weights  [2]float64 // seconds to read the weights
	attend   [2]float64 // seconds per row and position
	device   *sim.Device
	program  device.Program
	buffer   device.Slice
	slept    time.Duration // by the device
	forwards map[[3]int]time.Duration
}

// newDrawn draws a machine whose device computes at `speed` times the rate of the cores.
func newDrawn(t *testing.T, rng *rand.Rand, speed float64) *drawn {
	m := &drawn{t: t, forwards: map[[3]int]time.Duration{}}
	between := func(lo, hi float64) float64 { return lo * math.Pow(hi/lo, rng.Float64()) }
	m.row[0], m.weights[0], m.attend[0] = between(1e-4, 2e-3), between(2e-3, 5e-2), between(2e-8, 5e-7)
	bandwidth := math.Pow(speed, rng.Float64()) // between that of the cores and `speed` times that
	m.row[1], m.weights[1] = m.row[0]/speed, m.weights[0]/bandwidth
	m.attend[1] = m.attend[0] / between(min(speed, bandwidth), max(speed, bandwidth))
	m.device = sim.New(sim.Config{Mode: sim.Timed, Launch: time.Duration(between(2e3, 2e6)),
		CopyBytesPerS: kvBytes / between(2e-7, 4e-4), KernelDuration: m.kernel,
		Sleep: func(d time.Duration, _ <-chan struct{}) error { m.slept += d; return nil }})
	t.Cleanup(func() { _ = m.device.Close() })
	b := devgen.NewBuilder("forward", 64)
	b.Store(b.Binding("x", devgen.Write), b.Builtin(devgen.LocalIndex), b.U(0))
	k, err := b.Build()
	if err == nil {
		m.program, err = m.device.Compile(k)
	}
	if err == nil {
		m.buffer.Buffer, err = m.device.Alloc(placementChunk*kvBytes, device.DeviceLocal)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// kernel returns the time of one of kernelsOfModel equal kernels of a forward of groups[0] rows
// with groups[1] positions before each.
func (m *drawn) kernel(_ *devgen.Kernel, groups [3]int, _ []uint32) time.Duration {
	return seconds(m.on(1, groups[0], groups[1]) / kernelsOfModel)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (m *drawn) on(side, rows, positions int) float64 {
	return max(float64(rows)*m.row[side], m.weights[side]) + float64(rows*positions)*m.attend[side]
}

// forward returns the duration of a forward, with the copy of its keys and values to the cores.
func (m *drawn) forward(side, rows, positions int) time.Duration {
	positions = positions/64*64 + 32
	if side == 0 {
		return seconds(m.on(0, rows, positions))
	}
	key := [3]int{side, rows, positions}
	if d, ok := m.forwards[key]; ok {
		return d
	}
	m.slept = 0
	launch := device.Launch{Program: m.program, Groups: [3]int{rows, positions, 1}, Buffers: []device.Slice{m.buffer}}
	for i := range kernelsOfModel {
		steps := []device.Step{launch}
		if i == 0 {
			steps = append(steps, device.Copy{To: m.buffer, From: m.buffer, Bytes: uint64(rows * kvBytes)})
		}
		if err := device.RunOnce(m.t.Context(), m.device, steps...); err != nil {
			m.t.Fatal(err)
		}
	}
	m.forwards[key] = m.slept
	return m.slept
}

// copied returns the time to write the keys and values of a number of positions to the device.
func (m *drawn) copied(positions int) time.Duration {
	m.slept = 0
	for at := 0; at < positions; at += placementChunk {
		data := make([]byte, min(placementChunk, positions-at)*kvBytes)
		if err := m.device.Write(m.buffer.Buffer, 0, data); err != nil {
			m.t.Fatal(err)
		}
	}
	return m.slept
}

// rates predicts both sides from two anchors per phase, which enclose the rows of most forwards.
func (m *drawn) rates(l placement.Load) (r placement.Rates) {
	chunk := min(l.Prompt, placementChunk)
	for side, of := range []*placement.Side{&r.Cores, &r.Device} {
		for p, anchors := range [phase.Count][3]int{{chunk / 2, chunk, l.Prompt / 2},
			{1, l.Requests, l.Prompt + l.Output/2}} {
			of[p] = placement.Through(anchors[0], m.forward(side, anchors[0], anchors[2]),
				anchors[1], m.forward(side, anchors[1], anchors[2]))
		}
	}
	r.ToDevice = float64(m.copied(placementChunk)) / placementChunk // the copy to the cores is part of forwards
	return r
}

// placed is the cost of forwards under a placement.
type placed struct {
	*drawn
	side [phase.Count]int
}

func (p placed) Prefill(pos, n int, head bool) time.Duration {
	d := p.forward(p.side[phase.Prefill], n, pos+n/2)
	if head && p.side == [phase.Count]int{0, 1} {
		d += p.copied(n)
	}
	return d
}

func (p placed) Decode(context []int) time.Duration {
	sum := 0
	for _, n := range context {
		sum += n
	}
	return p.forward(p.side[phase.Decode], len(context), sum/len(context))
}

func (placed) Ops() int { return kernelsOfModel }

// lanes returns the side of each phase and the lanes of a placement.
func lanes(on []phase.Phase) (side [phase.Count]int, list []sched.Lane) {
	for _, p := range on {
		side[p] = 1
	}
	if side[0] == side[1] {
		return side, []sched.Lane{{Name: "both", Phases: phase.All[:], Cores: side[0] == 0}}
	}
	for _, p := range phase.All {
		list = append(list, sched.Lane{Name: p.String(), Phases: []phase.Phase{p}, Cores: side[p] == 0})
	}
	return side, list
}

// TestPlacementOfDrawnDevices draws simulated devices at several multiples of the speed of the
// cores. It compares the placement that Choose returns with all placements, as the scheduler serves
// them on the virtual clock: in 95 % of the draws the chosen one is within 5 % of the best.
func TestPlacementOfDrawnDevices(t *testing.T) {
	const draws = 200
	speeds := []float64{0.3, 1, 3, 20}
	rng := rand.New(rand.NewPCG(46, *placementSeed))
	within, worst := 0, 1.0
	best := map[int]int{} // draws by number of phases on the device of the best placement
	for draw := range draws {
		m := newDrawn(t, rng, speeds[draw%len(speeds)])
		load := placement.Load{Requests: 1 << rng.IntN(5), Prompt: 32 << rng.IntN(6), Output: 8 << rng.IntN(5),
			Chunk: placementChunk}
		trace := make(Trace, load.Requests)
		for i := range trace {
			trace[i] = Request{Class: sched.Class(draw / len(speeds) % 2),
				Prompt: load.Prompt/2 + rng.IntN(load.Prompt+1), Output: load.Output/2 + rng.IntN(load.Output+1)}
		}
		list := placement.Choose(load, m.rates(load))
		smallest := 0
		for i, e := range list {
			side, on := lanes(e.Device)
			r, err := Run(trace, placed{m, side}, Options{Sched: sched.Config{Lanes: on, MaxRunning: load.Requests,
				Chunk: placementChunk, Queue: len(trace), Blocks: 3 * load.Requests * kvcache.BlocksFor(8192)}})
			if err != nil {
				t.Fatal(err)
			}
			list[i].Latency = r.Mean((*Outcome).Latency)
			if list[i].Latency < list[smallest].Latency {
				smallest = i
			}
		}
		best[len(list[smallest].Device)]++
		ratio := float64(list[0].Latency) / float64(list[smallest].Latency)
		if ratio <= 1.05 {
			within++
		} else {
			t.Logf("draw %d, speed %g: %+v: chosen %v is %.2f times the best, %v", draw, speeds[draw%len(speeds)], load,
				list[0].Device, ratio, list[smallest].Device)
		}
		worst = max(worst, ratio)
	}
	t.Logf("%d of %d draws within 5 %% of the best placement, the worst at %.2f times; best placements by phases on "+
		"the device: %v", within, draws, worst, best)
	if within < draws*95/100 {
		t.Errorf("only %d of %d draws are within 5 %% of the best", within, draws)
	}
	for phases := range phase.Count + 1 {
		if best[phases] < draws/20 {
			t.Errorf("%d phases on the device are best in %d draws only; the draws decide nothing", phases,
				best[phases])
		}
	}
}
