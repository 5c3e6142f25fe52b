package offload

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"sandwich/microkernel/devgen"
	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
)

// prepared opens a rig with kernels of fixed rows and returns a function that waits until so many
// of them have ended.
func prepared(t *testing.T, o Options) (g *rig, wait func(n int) (errs []error)) {
	t.Helper()
	f := wavefrontFile(t)
	ended := make(chan error, 100)
	o.Rows, o.Static = wavefrontRows, true
	o.Prepared = func(kernel string, err error) {
		if err != nil {
			err = fmt.Errorf("%s: %w", kernel, err)
		}
		ended <- err
	}
	return openWith(t, f, testPlan(t, f, "int8"), o), func(n int) (errs []error) {
		for range n {
			errs = append(errs, <-ended)
		}
		return errs
	}
}

// staticKernels is the number of different products of the model of wavefrontFile: of queries, keys
// and values and attention outputs, which have equal shapes, of the gate, and of its output.
const staticKernels = 2

// TestStatic checks that forwards launch the kernels that were prepared for their rows, with the
// bits of the others, on the device alone and in a wavefront.
func TestStatic(t *testing.T) {
	testStatic(t, sim.New(sim.Config{}))
}

func testStatic(t *testing.T, dev device.Device) {
	t.Cleanup(func() { dev.Close() })
	g, wait := prepared(t, Options{Device: dev})
	tokens := testTokens(3*64, 64)
	cores := openRows(t, wavefrontFile(t), testPlan(t, wavefrontFile(t), "int8"), nil, wavefrontRows)
	cores.prompt(tokens[:64])
	want := cores.onlyCores()

	g.prompt(tokens[:64])
	g.runner.Prepare(minStatic-1, false) // no kernels
	if err := g.onDevice(); err != nil {
		t.Fatal(err)
	}
	sameLogits(t, "dynamic", [][]float32{g.runner.Logits(0)}, [][]float32{want})
	if s := g.runner.Variants(); s.Launches != 0 || s.Compiled != 0 {
		t.Errorf("without Prepare: %+v", s)
	}
	g.runner.Prepare(64, true)
	if err := errors.Join(wait(staticKernels)...); err != nil {
		t.Fatal(err)
	}
	g.runner.CoresWrite(&g.batch)
	g.prompt(tokens[:64])
	if err := g.onDevice(); err != nil {
		t.Fatal(err)
	}
	sameLogits(t, "static", [][]float32{g.runner.Logits(0)}, [][]float32{want})
	once := g.runner.Variants()
	if once.Compiled != staticKernels || once.Launches == 0 || once.Refused != 0 {
		t.Errorf("after Prepare: %+v", once)
	}
	g.advance(tokens[:64])
	cores.advance(tokens[:64])
	cores.prompt(tokens[64:])
	want = cores.onlyCores()
	g.prompt(tokens[64:])
	got, err := g.wavefront([][2]int{{128, 64}})
	if err != nil {
		t.Fatal(err)
	}
	sameLogits(t, "wavefront", [][]float32{got}, [][]float32{want})
	if s := g.runner.Variants(); s.Launches != 2*once.Launches {
		t.Errorf("%d launches of fixed rows after a wavefront, before %d", s.Launches, once.Launches)
	}
}

// TestStaticRefused checks that a kernel of fixed rows whose results differ is not used.
func TestStaticRefused(t *testing.T) {
	dev := sim.New(sim.Config{After: func(k *devgen.Kernel, buffers [][]byte) {
		if last := buffers[len(buffers)-1]; k.Static {
			last[0] ^= 1
		}
	}})
	t.Cleanup(func() { dev.Close() })
	same.Clear()
	g, wait := prepared(t, Options{Device: dev})
	g.runner.Prepare(64, false)
	for _, err := range wait(staticKernels) {
		if err == nil || !strings.Contains(err.Error(), "results differ from those of") {
			t.Errorf("error %v", err)
		}
	}
	g.prompt(testTokens(64, 64))
	if err := g.onDevice(); err != nil {
		t.Fatal(err)
	}
	if s := g.runner.Variants(); s.Launches != 0 || s.Refused != staticKernels {
		t.Errorf("%+v", s)
	}
}

// TestStaticFaults checks that a device that is lost or stalls in a wavefront while a kernel of
// fixed rows is being compiled ends both with an error, after which the cores give the right bits.
func TestStaticFaults(t *testing.T) {
	for _, fault := range []sim.Fault{sim.Crash, sim.Stall} {
		t.Run(fmt.Sprint(fault), func(t *testing.T) {
			var armed atomic.Bool
			began, goOn := make(chan struct{}, 10), make(chan struct{})
			dev := sim.New(sim.Config{Fault: func(device.Ticket) sim.Fault {
				if armed.Load() {
					return fault
				}
				return sim.None
			}, Compiling: func(k *devgen.Kernel) {
				if k.Static {
					began <- struct{}{}
					<-goOn
				}
			}})
			t.Cleanup(func() { dev.Close() })
			g, wait := prepared(t, Options{Device: dev})
			g.assumeFast() // else a stall may last a minute
			g.runner.times.least = 1
			tokens := testTokens(128, 64)
			g.prompt(tokens)
			want := g.onlyCores()
			g.runner.CoresWrite(&g.batch)
			g.runner.Prepare(64, true)
			<-began
			armed.Store(true)
			g.prompt(tokens)
			if _, err := g.wavefront([][2]int{{128, 64}}); !errors.Is(err, device.ErrLost) {
				t.Errorf("error %v, want %v", err, device.ErrLost)
			}
			dev.Close()
			close(goOn)
			if err := wait(1)[0]; !errors.Is(err, device.ErrLost) && err != nil {
				t.Errorf("the compilation ended with %v", err)
			}
			g.prompt(tokens)
			sameLogits(t, "after the fault", [][]float32{g.onlyCores()}, [][]float32{want})
		})
	}
}
