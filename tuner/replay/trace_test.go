package replay

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"sandwich/runtime/sched"
)

// flat is a cost by the row: 1 ms per prefill row, 10 ms per decode step and 1 ms per row of it.
type flat struct{}

func (flat) Prefill(_, n int, _ bool) time.Duration { return time.Duration(n) * time.Millisecond }
func (flat) Decode(c []int) time.Duration {
	return 10*time.Millisecond + time.Duration(len(c))*time.Millisecond
}
func (flat) Ops() int { return 10 }

func options() Options {
	return Options{Sched: sched.Config{Blocks: 1000, MaxRunning: 8, Queue: 100, Chunk: 64}}
}

func mustReplay(t *testing.T, tr Trace, o Options) *Report {
	t.Helper()
	r, err := Run(tr, flat{}, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOneRequest(t *testing.T) {
	o := options()
	o.Switch = time.Millisecond
	r := mustReplay(t, Trace{{At: time.Second, Prompt: 100, Output: 5}}, o)
	x := r.Outcomes[0]
	if x.TTFT() != 100*time.Millisecond || x.Tokens != 5 || x.End-x.First != 4*11*time.Millisecond+time.Millisecond {
		t.Errorf("%+v: first after %s, the rest took %s", x, x.TTFT(), x.End-x.First)
	}
	if r.Prefills != 2 || r.Decodes != 4 || r.Switches != 1 || r.Busy != r.Elapsed {
		t.Errorf("%+v", r)
	}
	if got := r.Throughput(); got < 34 || got > 35 {
		t.Errorf("%.1f tokens/s", got)
	}
}

func TestNoRequestIsLost(t *testing.T) {
	for seed := range uint64(20) {
		w, err := Named("agent")
		if err != nil {
			t.Fatal(err)
		}
		o := options()
		o.Sched.Blocks, o.Sched.Queue = 90, 10 // tight, to cause preemption and rejection
		tr := w.Poisson(200, 0.5, seed)
		r := mustReplay(t, tr, o)
		for i, x := range r.Outcomes {
			if x.Finished() == x.Rejected {
				t.Fatalf("seed %d request %d: %+v", seed, i, x)
			}
			if x.Finished() && (x.Tokens != x.Output || x.First < x.At || x.End < x.First) {
				t.Fatalf("seed %d request %d: %+v", seed, i, x)
			}
		}
		if !reflect.DeepEqual(r, mustReplay(t, tr, o)) {
			t.Fatalf("seed %d: two replays differ", seed)
		}
	}
}

func TestReactiveHaltsProactivePrefill(t *testing.T) {
	o := options()
	o.Sched.Chunk, o.Sched.Bound = 1000, time.Second
	tr := Trace{{Class: sched.Proactive, Prompt: 1000, Output: 1}, {At: 255 * time.Millisecond, Prompt: 10, Output: 1}}
	if r := mustReplay(t, tr, options()); r.Outcomes[1].TTFT() > 25*time.Millisecond {
		t.Errorf("where ops are cut after 10 ms, it waited %s", r.Outcomes[1].TTFT())
	}
	tr[1].At = 250 * time.Millisecond
	r := mustReplay(t, tr, o)
	// The chunk of a second has boundaries every 100 ms; the arrival waits for the next one.
	if got := r.Outcomes[1].TTFT(); got != 60*time.Millisecond {
		t.Errorf("the reactive request waited %s for its first token", got)
	}
	if got := r.Outcomes[0].End; got != 1010*time.Millisecond {
		t.Errorf("the proactive one ended at %s", got)
	}
	if r.Sched.Stops != 1 {
		t.Errorf("%d stops", r.Sched.Stops)
	}
}

func TestSequential(t *testing.T) {
	w, _ := Named("fixed")
	o := options()
	o.Sequential = true
	r := mustReplay(t, w.Sequential(5, 1), o)
	for i := 1; i < 5; i++ {
		if r.Outcomes[i].At != r.Outcomes[i-1].End {
			t.Errorf("request %d came at %s, the one before ended at %s", i, r.Outcomes[i].At, r.Outcomes[i-1].End)
		}
	}
	if r.TTFT(0.5) != 512*time.Millisecond || r.TTFT(0.9) != r.TTFT(0.1) {
		t.Errorf("times to the first token %s, %s", r.TTFT(0.5), r.TTFT(0.9))
	}
}

func TestGoodput(t *testing.T) {
	w, _ := Named("fixed")
	slo := SLO{TTFT: 3 * time.Second, TPOT: 100 * time.Millisecond}
	rate, err := HighestRate(w, 100, 1, flat{}, options(), slo, 0.9, 0.01, 100)
	if err != nil {
		t.Fatal(err)
	}
	// A request takes 0.512 s of prefill and 64 decode steps shared by up to 8.
	if rate < 0.3 || rate > 2 {
		t.Errorf("goodput of %.2f requests a second", rate)
	}
	for _, c := range []struct {
		rate float64
		want bool
	}{{rate * 0.98, true}, {rate * 1.2, false}} {
		r := mustReplay(t, w.Poisson(100, c.rate, 1), options())
		if got := r.Attainment(slo) >= 0.9; got != c.want {
			t.Errorf("at %.2f requests a second the level is attained: %v", c.rate, got)
		}
	}
	if rate, err := HighestRate(w, 20, 1, flat{}, options(), SLO{}, 0.9, 0.01, 1); err != nil || rate != 0 {
		t.Errorf("an impossible level: %v, %v", rate, err)
	}
	if _, err := HighestRate(w, 20, 1, flat{}, options(), slo, 0.9, 2, 1); err == nil {
		t.Error("an empty range of rates is not refused")
	}
}

func TestObjectives(t *testing.T) {
	w, _ := Named("chat")
	r := mustReplay(t, w.Poisson(50, 0.2, 3), options())
	for _, o := range []string{Latency, Throughput, Attainment} {
		if s, err := r.Score(o, SLO{time.Hour, time.Hour}); err != nil || s <= 0 {
			t.Errorf("%s: %v, %v", o, s, err)
		}
	}
	if _, err := r.Score("beauty", SLO{}); err == nil {
		t.Error("an unknown objective is not refused")
	}
}

func TestFiles(t *testing.T) {
	w, _ := Named("agent")
	tr := w.Poisson(30, 2, 9)
	for i := range tr { // files keep at least microseconds
		tr[i].At = tr[i].At.Round(time.Microsecond)
	}
	var buf bytes.Buffer
	if err := tr.Write(&buf); err != nil {
		t.Fatal(err)
	}
	back, err := Read(&buf)
	if err != nil {
		t.Fatal(err)
	}
	for i := range back {
		back[i].At = back[i].At.Round(time.Microsecond)
	}
	if !reflect.DeepEqual(tr, back) {
		t.Error("a trace differs after writing and reading")
	}
	for text, want := range map[string]string{
		"":                                "no request",
		`{"at":0,"prompt":0,"output":1}`:  "line 1",
		`{"at":-1,"prompt":1,"output":1}`: "not a valid time",
		`{"at":1,"prompt":1,"output":1}` + "\n" + `{"at":0,"prompt":1,"output":1}`: "line 2",
		`{"at":1,"class":"vip","prompt":1,"output":1}`:                             "vip",
		`{"at":1,"prompt":1,"output":1,"colour":"red"}`:                            "colour",
		`{"at":1,"prompt":99999999,"output":1}`:                                    "tokens",
		`[1,2]`:                                                                    "line 1",
		strings.Repeat("x", 100<<10):                                               "too long",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	if _, err := Named("no such trace"); err == nil {
		t.Error("an unknown workload is not refused")
	}
}

func TestPoisson(t *testing.T) {
	for _, name := range Workloads() {
		w, _ := Named(name)
		tr := w.Poisson(2000, 4, 1)
		if rate := float64(len(tr)) / tr[len(tr)-1].At.Seconds(); rate < 3.6 || rate > 4.4 {
			t.Errorf("%s: %.2f arrivals a second, want 4", name, rate)
		}
		faster := w.Poisson(2000, 8, 1)
		for i := range tr {
			if tr[i].Prompt != faster[i].Prompt || tr[i].Class != faster[i].Class {
				t.Fatalf("%s: request %d differs between rates", name, i)
			}
			if tr[i].Prompt < w.Prompt.Min || tr[i].Prompt > w.Prompt.Max || tr[i].Output < 1 {
				t.Fatalf("%s: %+v", name, tr[i])
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"at":1.5,"class":"reactive","prompt":120,"output":64}`))
	f.Add([]byte("{\"at\":0,\"prompt\":1,\"output\":1}\n\n{\"at\":1e3,\"class\":\"proactive\",\"prompt\":9,\"output\":1}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		last := time.Duration(0)
		for _, r := range tr {
			if r.At < last || r.Prompt < 1 || r.Output < 1 || r.Class > sched.Proactive {
				t.Fatalf("accepted %+v", r)
			}
			last = r.At
		}
	})
}

func TestUnknownPolicy(t *testing.T) {
	o := options()
	o.Sched.Policy = "beauty"
	_, err := Run(Trace{{Prompt: 1, Output: 1}}, flat{}, o)
	if err == nil || !strings.Contains(err.Error(), sched.DefaultPolicy) {
		t.Errorf("an unknown policy: %v", err)
	}
}
