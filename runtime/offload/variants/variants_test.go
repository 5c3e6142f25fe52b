package variants

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"sandwich/microkernel/devgen"
	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
)

// rig is a cache on a simulated device that compiles when the test says so.
type rig struct {
	*Cache[int]
	dev   *sim.Device
	began chan string
	goOn  chan struct{}
	ended chan error
}

func open(t *testing.T, o Options) *rig {
	r := &rig{began: make(chan string, 100), goOn: make(chan struct{}, 100), ended: make(chan error, 100)}
	r.dev = sim.New(sim.Config{Compiling: func(k *devgen.Kernel) {
		r.began <- k.Name
		<-r.goOn
	}, Refuse: func(k *devgen.Kernel) error {
		if k.Name == "k13" {
			return errors.New("unlucky")
		}
		return nil
	}})
	o.Device, o.Ended = r.dev, func(_ string, err error) { r.ended <- err }
	r.Cache = New[int](o)
	t.Cleanup(func() {
		close(r.goOn)
		r.dev.Close()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func job(key int) Job[int] {
	return Job[int]{Key: key, Kernel: func() (*devgen.Kernel, error) {
		b := devgen.NewBuilder(fmt.Sprint("k", key), 64)
		b.Store(b.Binding("to", devgen.Write), b.Builtin(devgen.LocalIndex), b.U(key))
		return b.Build()
	}}
}

// pass lets n compilations end and returns the kernels' names in order.
func (r *rig) pass(n int) (names []string) {
	for range n {
		names = append(names, <-r.began)
		r.goOn <- struct{}{}
		<-r.ended
	}
	return names
}

// TestOrder checks that variants are compiled once, urgent ones first, and are ready only then.
func TestOrder(t *testing.T) {
	r := open(t, Options{})
	r.Prepare(false, job(1), job(2))
	first := <-r.began
	r.Prepare(true, job(3), job(2), job(4))
	if r.Ready(1) != nil || r.Ready(9) != nil {
		t.Error("a variant is ready before it is compiled")
	}
	r.goOn <- struct{}{}
	<-r.ended
	if names := append([]string{first}, r.pass(3)...); !slices.Equal(names, []string{"k1", "k3", "k4", "k2"}) {
		t.Errorf("compiled %v", names)
	}
	if p := r.Ready(4); p == nil || p.Kernel().Name != "k4" {
		t.Errorf("program %v", p)
	}
	r.Prepare(false, job(1), job(4))
	if s := r.Stats(); s != (Stats{Compiled: 4, Launches: 1}) {
		t.Errorf("%+v", s)
	}
}

// TestRefused checks variants that the compiler or a check refuses, and those beyond the limit.
func TestRefused(t *testing.T) {
	r := open(t, Options{Most: 3})
	bad := errors.New("wrong results")
	checked := job(1)
	checked.Check = func(device.Program) error { return bad }
	failing := job(2)
	failing.Kernel = func() (*devgen.Kernel, error) { return nil, bad }
	r.Prepare(false, failing, checked, job(13), job(4))
	if err := <-r.ended; !errors.Is(err, bad) {
		t.Errorf("error %v", err)
	}
	r.pass(2)
	for _, key := range []int{1, 2, 13, 4} {
		if r.Ready(key) != nil {
			t.Errorf("variant %d is ready", key)
		}
	}
	if s := r.Stats(); s != (Stats{Refused: 3, Dropped: 1}) {
		t.Errorf("%+v", s)
	}
}

// TestQueue checks that the newest variants that wait are compiled first, the oldest ones that are
// not urgent are dropped, and a dropped one can be queued again.
func TestQueue(t *testing.T) {
	r := open(t, Options{Queue: 3})
	r.Prepare(false, job(0))
	first := <-r.began
	r.Prepare(false, job(1), job(2))
	r.Prepare(true, job(3))
	r.Prepare(false, job(4))
	r.Prepare(false, job(2))
	r.goOn <- struct{}{}
	<-r.ended
	if names := append([]string{first}, r.pass(3)...); !slices.Equal(names, []string{"k0", "k3", "k2", "k4"}) {
		t.Errorf("compiled %v", names)
	}
	if s := r.Stats(); s != (Stats{Compiled: 4, Dropped: 2}) {
		t.Errorf("%+v", s)
	}
}

// TestExpiry checks that variants that are not used are freed by Sweep, sooner when there is no
// room, and that those in use remain.
func TestExpiry(t *testing.T) {
	r := open(t, Options{Most: 2, Idle: 16})
	r.Prepare(false, job(1), job(2))
	r.pass(2)
	for range 16 {
		r.Prepare(false)
		r.Ready(1)
	}
	r.Sweep()
	if r.Ready(2) == nil {
		t.Error("a variant expired too early")
	}
	for range 17 {
		r.Prepare(false)
		r.Ready(1)
	}
	r.Sweep()
	if s := r.Stats(); r.Ready(2) != nil || r.Ready(1) == nil || s.Expired != 1 {
		t.Errorf("after 17 calls: %+v", s)
	}
	r.Prepare(false, job(2))
	r.pass(1)
	for range 3 {
		r.Prepare(false, job(3)) // there is no room
		r.Ready(1)
	}
	r.Sweep()
	if s := r.Stats(); r.Ready(2) != nil || r.Ready(1) == nil || s.Expired != 2 || s.Dropped != 3 {
		t.Errorf("without room: %+v", s)
	}
}

// TestClose checks that Close waits for the compilation and frees each variant, and that a lost
// device ends the work.
func TestClose(t *testing.T) {
	r := open(t, Options{})
	r.Prepare(false, job(1), job(2), job(3))
	r.pass(1)
	<-r.began
	r.dev.Close()
	r.goOn <- struct{}{}
	if err := <-r.ended; !errors.Is(err, device.ErrLost) {
		t.Errorf("compiled on a lost device: %v", err)
	}
	r.Cache.compiling.Wait()
	if len(r.began) > 0 || r.Stats().Compiled != 1 {
		t.Errorf("%+v after the device was lost", r.Stats())
	}
	r.Prepare(true, job(5))
	if r.Close() != nil || r.Ready(1) != nil {
		t.Error("a variant remains after Close")
	}
	r.Prepare(true, job(6))
	r.Sweep()
}
