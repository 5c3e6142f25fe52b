package finals

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen"
	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/phase"
	"sandwich/tuner/arms"
	"sandwich/tuner/partition"
	"sandwich/tuner/ranking"
	"sandwich/tuner/run"
)

// deviceSubject returns a small model for which a device may race.
func deviceSubject(t *testing.T) (*partition.Subject, plans.ModelShape) {
	t.Helper()
	host, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	c := model.Config{Name: "tiny", Arch: "llama", Eps: 1e-5, RopeBase: 10000,
		Dims: model.Dims{Hidden: 32, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 48, Vocab: 384, Context: 256}}
	s := &partition.Subject{Profile: host, Config: &c, Type: synth.Uniform(gguf.F32),
		Plan: heuristic.Options{SeqMax: 32, BatchMax: 1, Attend: "f32", Threads: 1}}
	shape, err := s.Shape()
	if err != nil {
		t.Fatal(err)
	}
	return s, shape
}

// TestRaceRejectsDevices checks that devices which cannot run the model, or are much slower, leave
// the race before it begins, with the reason, and that the cores keep their phases.
func TestRaceRejectsDevices(t *testing.T) {
	s, shape := deviceSubject(t)
	slow := func(*devgen.Kernel, [3]int, []uint32) time.Duration { return 2 * time.Millisecond }
	for _, x := range []struct {
		name   string
		config sim.Config
		want   string // among the reasons
	}{
		{"refuses", sim.Config{Mode: sim.Timed, Refuse: func(*devgen.Kernel) error { return errors.New("no") }},
			"the device refuses the kernel: no"},
		{"little memory", sim.Config{Mode: sim.Timed, MemoryBytes: 1 << 12}, "too little memory"},
		{"slow", sim.Config{Mode: sim.Timed, KernelDuration: slow}, "times as long as the default plan in one sample"},
	} {
		dev := sim.New(x.config)
		r := run.New(run.Options{Budget: time.Hour, Seed: 1}) // a busy machine takes longer
		l, err := partition.NewLoader(r, s, shape)
		if err != nil {
			t.Fatal(err)
		}
		home := l.Home()
		if err := l.Open(t.Context(), home); err != nil {
			t.Fatal(err)
		}
		f := arms.New(r, l, "finalists", 1)
		f.Add("default", home, [phase.Count]*plans.Phase{&home.Plan.Prefill, &home.Plan.Decode}, false, true)
		err = f.AddTests(t.Context(), false, run.FinalsEnd, home.Served()...)
		for i := range f.Tests {
			f.Tests[i].Seconds = 1e-6 // a busy machine may delay the default plan by more than the slow device
		}
		var late []*arms.Arm
		if err == nil {
			_, late, err = deviceArms(t.Context(), f, Device{ID: "sim:0", Device: dev})
		}
		l.Close()
		dev.Close()
		if err != nil {
			t.Fatal(err)
		}
		reasons := ""
		for _, j := range r.Rejected {
			reasons += j.Candidate + ": " + j.Reason + "\n"
		}
		if len(late) != 0 || !strings.Contains(reasons, x.want) {
			t.Errorf("%s: %d arms; rejected:\n%s", x.name, len(late), reasons)
		}
	}
}

// TestDeviceArms checks that the device races alone, and if its arithmetic differs from that of the
// default plan, also disaggregated: prefill on one side and decode on the other.
func TestDeviceArms(t *testing.T) {
	s, shape := deviceSubject(t)
	for _, x := range []struct {
		other bool // the default plan has arithmetic that no device has
		want  []string
	}{
		{false, []string{"on device sim:0 prefill decode"}},
		{true, []string{"on device sim:0 prefill decode", "prefill on device sim:0 prefill",
			"decode on device sim:0 decode"}},
	} {
		dev := sim.New(sim.Config{Mode: sim.Timed})
		r := run.New(run.Options{Budget: time.Hour, Seed: 1})
		l, err := partition.NewLoader(r, s, shape)
		if err != nil {
			t.Fatal(err)
		}
		home := l.Home()
		if err := l.Open(t.Context(), home); err != nil {
			t.Fatal(err)
		}
		f := arms.New(r, l, "finalists", 1)
		f.Add("default", home, [phase.Count]*plans.Phase{&home.Plan.Prefill, &home.Plan.Decode}, false, true)
		if err := f.AddTests(t.Context(), false, run.FinalsEnd, home.Served()...); err != nil {
			t.Fatal(err)
		}
		for i := range f.Tests {
			f.Tests[i].Seconds = 1e6 // the cores are slower, however busy the machine is
		}
		if x.other {
			home.Plan.Attention = microkernel.AttentionDots()[1]
		}
		at, list, err := deviceArms(t.Context(), f, Device{ID: "sim:0", Device: dev})
		if err != nil || at != 1 {
			t.Errorf("before arm %d: %v", at, err)
		}
		var got []string
		for _, a := range list {
			text := a.Name
			for _, p := range phase.All {
				if a.OnDevice[p] {
					text += " " + p.String()
				}
			}
			got = append(got, text)
			if (a.On == home) == x.other || a.Device != dev {
				t.Errorf("%s runs on another partition or device", a.Name)
			}
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("arms %q, want %q; rejected: %+v", got, x.want, r.Rejected)
		}
		l.Close()
		dev.Close()
	}
}

// TestSlowDeviceLeavesTheRace checks that the cores are raced in full if preparing the device takes
// longer than the budget.
func TestSlowDeviceLeavesTheRace(t *testing.T) {
	s, shape := deviceSubject(t)
	clock := time.Now()
	dev := sim.New(sim.Config{Mode: sim.Timed, Compiling: func(*devgen.Kernel) { clock = clock.Add(time.Hour) }})
	defer dev.Close()
	r := run.New(run.Options{Budget: 30 * time.Minute, Seed: 1, Now: func() time.Time { return clock }})
	l, err := partition.NewLoader(r, s, shape)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Open(t.Context(), l.Home()); err != nil {
		t.Fatal(err)
	}
	won, err := Race(t.Context(), defaultInput(r, l, dev))
	if err != nil {
		t.Fatal(err)
	}
	if won.Race == nil || len(won.Race.Arms[0].Laps) < arms.MinRounds {
		t.Errorf("the cores were not raced: %+v", r.Rejected)
	}
	for _, ph := range phase.All {
		if w := won.Phases[ph]; !w.Measured || w.OnDevice {
			t.Errorf("%s: measured %v, on the device %v", ph, w.Measured, w.OnDevice)
		}
	}
	if len(r.Rejected) == 0 || !strings.Contains(r.Rejected[0].Candidate, "on device sim:0") {
		t.Errorf("the reason is missing: %+v", r.Rejected)
	}
}

// defaultInput returns the input of a race of the default plan and a device.
func defaultInput(r *run.Run, l *partition.Loader, dev *sim.Device) Input {
	e := Entry{Partition: l.Home()}
	for _, ph := range phase.All {
		e.Sets[ph] = []ranking.ActiveSet{{Name: "default", PUs: l.Home().Phase(ph).PUs}}
		e.Tables[ph] = [][]plans.Table{l.Home().Phase(ph).Tables}
	}
	return Input{Run: r, Loader: l, Ranking: &ranking.Ranking{}, Entries: []Entry{e}, TopK: 1,
		Device: Device{ID: "sim:0", Device: dev}}
}

// TestRaceWithoutDevice checks that the cores keep their phases if the device refuses every kernel,
// also if the budget is over before that shows.
func TestRaceWithoutDevice(t *testing.T) {
	s, shape := deviceSubject(t)
	dev := sim.New(sim.Config{Mode: sim.Timed, Refuse: func(*devgen.Kernel) error { return errors.New("no") }})
	defer dev.Close()
	r := run.New(run.Options{Budget: time.Hour, Seed: 1})
	l, err := partition.NewLoader(r, s, shape)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	home := l.Home()
	if err := l.Open(t.Context(), home); err != nil {
		t.Fatal(err)
	}
	r.Began, r.Budget = time.Now(), 600*time.Millisecond
	won, err := Race(t.Context(), defaultInput(r, l, dev))
	if err != nil {
		t.Fatal(err)
	}
	if won.Phases[phase.Prefill].OnDevice || won.Phases[phase.Decode].OnDevice {
		t.Errorf("%+v", won.Phases)
	}
}
