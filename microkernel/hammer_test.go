package microkernel

import (
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var garbage atomic.Pointer[[]byte]

// TestHammer runs kernels on every processor while the collector runs without pause, preemption signals fly and the profiler
// samples: generated code must survive being interrupted anywhere.
func TestHammer(t *testing.T) {
	isas := Host().ISAs()
	if raceEnabled || len(Space(Host(), isas[0], ComputeF32, F32)) < 2 {
		t.Skip("no generated kernels here")
	}
	if err := pprof.StartCPUProfile(io.Discard); err == nil {
		defer pprof.StopCPUProfile()
	}
	duration := time.Second
	if *long {
		duration = 30 * time.Second
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			b := make([]byte, 1<<20)
			garbage.Store(&b)
			runtime.GC()
		}
	})
	var calls atomic.Int64
	for w := range 2 * runtime.GOMAXPROCS(0) {
		r := rand.New(rand.NewPCG(40, uint64(w)))
		s := Spec{ISA: isas[w%(len(isas)-1)], Compute: ComputeF32, B: []WeightType{F32, Q8_0}[w%2], MR: 4, NR: 16, KU: 32}
		if s.ISA == NEON {
			s.Form = Lane
		}
		if !s.B.Quantized() {
			s.KU = 4
		}
		kernel, err := Build(s)
		if err != nil {
			t.Fatal(err)
		}
		p := newProblem(t, r, s, 24, 40, 512)
		p.fill()
		p.run(func(g *GemmArgs) { RunRef(s, g) }, p.want)
		wg.Go(func() {
			for !stop.Load() {
				for range 50 {
					p.run(kernel.Run, p.c)
				}
				if err := p.diff("under fire"); err != nil {
					t.Error(err)
					return
				}
				calls.Add(50)
			}
		})
	}
	time.Sleep(duration)
	stop.Store(true)
	wg.Wait()
	if calls.Load() == 0 {
		t.Error("no kernel finished")
	}
}

// TestRunDoesNotAllocate: a call makes no garbage.
func TestRunDoesNotAllocate(t *testing.T) {
	all := spaces(50)
	for _, s := range all[:min(len(all), 20)] {
		kernel, err := Build(s)
		if err != nil {
			t.Fatal(err)
		}
		p := newProblem(t, rand.New(rand.NewPCG(51, 1)), s, 5, 20, max(32, s.B.Block()))
		g := GemmArgs{}
		p.run(func(one *GemmArgs) { g = *one }, p.c)
		if n := testing.AllocsPerRun(10, func() { kernel.Run(&g) }); n != 0 {
			t.Errorf("%s allocates %v times a call", s, n)
		}
	}
}
