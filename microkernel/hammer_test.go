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

	amd64gemm "sandwich/microkernel/internal/amd64/gemm"
	"sandwich/microkernel/internal/jit"
)

var garbage atomic.Pointer[[]byte]

// hammerSpecs returns two kernels of each instruction set, and those of matrix units, whose state
// is saved separately from the vector registers.
func hammerSpecs(isas []ISA) (specs []Spec) {
	for _, isa := range isas {
		s := Spec{ISA: isa, B: F32, MR: 4, NR: PanelWidth, KU: 4}
		switch isa {
		case Go:
			continue
		case NEON:
			s.Form = Lane
		}
		q := s
		q.B, q.KU = Q8_0, 32
		specs = append(specs, s, q)
	}
	for _, s := range []Spec{
		{ISA: NEON, B: F32, MR: 8, NR: PanelWidth, KU: 16, Form: Outer},
		{ISA: NEON, Compute: ComputeInt8, B: Q8_0, MR: 8, NR: PanelWidth, KU: 32, Form: Outer, Dot: MOPA},
		amxSpec(Q8_0, amd64gemm.AMXRows),
	} {
		if Host().Has(s.Needs()) {
			specs = append(specs, s)
		}
	}
	return specs
}

// TestHammer runs kernels on every processor while the collector runs without pause, preemption
// signals fly and the profiler samples: generated code must survive being interrupted anywhere.
func TestHammer(t *testing.T) {
	isas := Host().ISAs()
	if jit.Race || len(Space(Host(), isas[0], ComputeF32, F32)) < 2 {
		t.Skipf("no generated kernels on this CPU (%s) or in race builds", Host())
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
	specs := hammerSpecs(isas)
	for w := range max(2*runtime.GOMAXPROCS(0), len(specs)) {
		r := rand.New(rand.NewPCG(40, uint64(w)))
		s := specs[w%len(specs)]
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
	for deadline := time.Now().Add(time.Minute); calls.Load() == 0 && time.Now().Before(deadline); { // a busy machine
		time.Sleep(time.Millisecond)
	}
	stop.Store(true)
	wg.Wait()
	if calls.Load() == 0 {
		t.Error("no kernel finished")
	}
}

// TestRunDoesNotAllocate checks that a call does not allocate.
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
