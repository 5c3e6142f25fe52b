package ranking

import (
	"flag"
	"math"
	"testing"
	"time"

	"sandwich/profiles"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/sched"
	"sandwich/tuner/replay"
)

// slowly enables a search, of a minute or two, for how slow the machine would have to be for the
// paper's figures.
var slowly = flag.Bool("slower-xpu", false, "find how slow a machine gives the figures of Agent.xpu")

// xpuSeeds is the number of traces that each figure averages.
const xpuSeeds = 8

// xpu is the mixed workload of Agent.xpu section 6.2 on its machine.
type xpu struct {
	p     map[string]param
	model string
	cost  map[string]*Devices // by lanes
}

// newXPU returns the machine with both devices and the memory slower than assumed by a factor.
func newXPU(t *testing.T, p map[string]param, name string, slower float64) *xpu {
	t.Helper()
	host, err := profiles.Builtin(p["machine"].Value.(string))
	if err != nil {
		t.Fatal(err)
	}
	for i := range host.Ceilings {
		host.Ceilings[i].Median /= slower
	}
	shape := shapeFor(t, name, p["type"].Value.(string))
	ops, err := modelshape.Outline(shape)
	if err != nil {
		t.Fatal(err)
	}
	x := &xpu{p: p, model: name, cost: map[string]*Devices{}}
	for lanes, of := range map[string][2]string{"gpu": {"gpu", "gpu"}, "npu,gpu": {"npu", "gpu"}} {
		d, _, err := OnDevices(host, Options{Shape: shape, Model: ops}, of[0], of[1])
		if err != nil {
			t.Fatal(err)
		}
		x.cost[lanes] = d
	}
	return x
}

// serve returns the mean latency of reactive requests over some traces, and their wait for the
// first forward, in seconds.
func (x *xpu) serve(t *testing.T, policy, lanes string, reactive, proactive float64) (latency, pending float64) {
	t.Helper()
	context, batch := x.p["context"].Value.(int), x.p["batch"].Value.(int)
	during := time.Duration(x.p["minutes"].Value.(int)) * time.Minute
	for seed := range uint64(xpuSeeds) {
		var of []replay.Arrivals
		for class, rate := range []float64{reactive, proactive} {
			sets, err := replay.SetsOf("mixed", sched.Class(class))
			if err != nil {
				t.Fatal(err)
			}
			of = append(of, replay.Arrivals{Class: sched.Class(class), Rate: rate, Sets: sets})
		}
		list := replay.Poisson(during, seed, context, of...)
		r, err := x.cost[lanes].Serve(list, sched.Config{Policy: policy, MaxRunning: batch, Queue: len(list)})
		if err != nil {
			t.Fatal(err)
		}
		if r.Finished() != len(list) {
			t.Fatalf("%s on %s: %d of %d requests were served", policy, lanes, r.Finished(), len(list))
		}
		own := r.Of(sched.Reactive)
		latency += own.Mean((*replay.Outcome).Latency).Seconds() / xpuSeeds
		pending += own.Mean((*replay.Outcome).Pending).Seconds() / xpuSeeds
	}
	return latency, pending
}

// most returns the largest reduction of reactive latency if both devices and the memory are up to
// ten times slower than assumed, in steps of a quarter, and the factor at which it occurs.
func (x *xpu) most(t *testing.T, reactive, proactive float64) (percent, at float64) {
	t.Helper()
	for slower := 1.0; slower <= 10; slower += 0.25 {
		y := newXPU(t, x.p, x.model, slower)
		base, _ := y.serve(t, "fcfs", "gpu", reactive, proactive)
		both, _ := y.serve(t, "sandwich", "npu,gpu", reactive, proactive)
		if p := 100 * (1 - both/base); p > percent {
			percent, at = p, slower
		}
	}
	return percent, at
}

// TestAgentXPU prints the table of docs/papers.md: the reduction of reactive latency compared with
// continuous batching on the GPU, with two lanes and two classes, with the classes only, with the
// lanes only, and with the GPU for reactive requests only.
func TestAgentXPU(t *testing.T) {
	p := readParams(t)["agentxpu"]
	host, err := profiles.Builtin(p["machine"].Value.(string))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range host.Ceilings {
		if c.Kind == profiles.Compute && c.Device != "" && c.Type == devicePath && c.Median != p["device_flops"].Value {
			t.Errorf("%s has %g FLOP/s, docs/papers.params.yaml %v", c.Device, c.Median, p["device_flops"].Value)
		}
	}
	if p["chunk"].Value != deviceChunk || p["kernels"].Value != fusedOps {
		t.Errorf("docs/papers.params.yaml has other chunks than %d or kernels than %d", deviceChunk, fusedOps)
	}
	rate := 256 * 6 * 4096 * 14336 / p["kernel"].Value.(float64)
	if math.Abs(rate/p["device_flops"].Value.(float64)-1) > 0.01 {
		t.Errorf("256 rows of the feed-forward part in %v s are %g FLOP/s", p["kernel"].Value, rate)
	}
	proactive := float64(p["proactive"].Value.(int))
	for _, size := range []string{"small", "large"} {
		x := newXPU(t, p, p[size].Value.(string), 1)
		paper := p["reduced_"+size].Value.([]any)
		for i, rate := range p["reactive"].Value.([]any) {
			reactive := float64(rate.(int))
			base, waits := x.serve(t, "fcfs", "gpu", reactive, proactive)
			less := func(latency float64) float64 { return 100 * (1 - latency/base) }
			both, pending := x.serve(t, "sandwich", "npu,gpu", reactive, proactive)
			classes, _ := x.serve(t, "sandwich", "gpu", reactive, proactive)
			lanes, _ := x.serve(t, "fcfs", "npu,gpu", reactive, proactive)
			alone, _ := x.serve(t, "fcfs", "gpu", reactive, 0)
			t.Logf("%s, %g a minute: fcfs on gpu %.1f s (waits %.1f), both %.1f s (waits %.3f): %.1f %% less, "+
				"paper %v; classes alone %.1f, lanes alone %.1f, without proactive requests %.1f", x.model, reactive,
				base, waits, both, pending, less(both), paper[i], less(classes), less(lanes), less(alone))
			if *slowly {
				percent, at := x.most(t, reactive, proactive)
				t.Logf("at the very most %.1f %%, %g times slower", percent, at)
			}
			if both >= base || classes >= base {
				t.Errorf("%s, %g a minute: two classes serve reactive requests no sooner", x.model, reactive)
			}
		}
	}
}
