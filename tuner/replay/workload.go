package replay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"sandwich/runtime/sched"
)

// Lengths is a log-normal distribution of token counts, bounded at both ends.
type Lengths struct {
	Median   float64
	Spread   float64 // of the logarithm; 0: all lengths are equal
	Min, Max int
}

// meanOf returns a distribution with a mean instead of a median. The bounds change the mean only
// slightly.
func meanOf(mean, spread float64, lo, hi int) Lengths {
	return Lengths{mean / math.Exp(spread*spread/2), spread, lo, hi}
}

func (l Lengths) draw(rng *rand.Rand) int {
	x := l.Median * math.Exp(l.Spread*rng.NormFloat64())
	return max(l.Min, min(l.Max, int(math.Round(x))))
}

// Workload is a kind of trace.
type Workload struct {
	Name      string
	About     string
	Prompt    Lengths
	Output    Lengths
	Proactive float64 // fraction of proactive requests
}

// workloads by name. The lengths are assumed: they have the shape of public chat logs but are not
// samples of them.
var workloads = []Workload{
	{"chat", "short questions, answers of some hundred tokens (assumed lengths of public chat logs)", Lengths{60, 1.1,
		4, 2048}, Lengths{180, 0.9, 4, 1024}, 0},
	{"summarize", "long prompts, short answers (assumed)", Lengths{1200, 0.5, 128, 4096}, Lengths{90, 0.5, 16, 256}, 0},
	{"agent", "prompts of an assistant with tools, a third of them in the background (assumed)", Lengths{700, 0.7, 64,
		4096}, Lengths{120, 0.7, 8, 512}, 1. / 3},
	{"sharegpt", "conversations with ChatGPT: means of 161.31 tokens in and 337.99 out (vLLM, SOSP 2023, figure 11); " +
		"log-normal with assumed spread", meanOf(161.31, 1.2, 4, 1024), meanOf(337.99, 0.9, 4, 1024), 0},
	{"lmsys-chat", "LMSYS-Chat-1M: means of 69.5 tokens a prompt and 214.5 an answer (its paper, table 1); " +
		"log-normal with assumed spread", meanOf(69.5, 1.2, 4, 1024), meanOf(214.5, 0.9, 4, 1024), 0},
	{"gsm8k", "school mathematics: means of 92 tokens in and 100 out (SMEPilot, table of workloads); assumed spread",
		meanOf(92, 0.4, 24, 400), meanOf(100, 0.5, 16, 400), 0},
	{"ruler", "questions about long texts, RULER of 4k: means of 3324 tokens in and 4 out (SMEPilot, table of " +
		"workloads); assumed spread", meanOf(3324, 0.1, 2048, 4090), meanOf(4, 0, 4, 4), 0},
	{"longwriter", "LongWriter-6k: means of 339 tokens in and 5424 out (SMEPilot, table of workloads); assumed spread",
		meanOf(339, 0.6, 32, 2048), meanOf(5424, 0.4, 1024, 16384), 0},
	{"fixed", "512 tokens in, 64 out", Lengths{512, 0, 512, 512}, Lengths{64, 0, 64, 64}, 0},
}

// Usual is the default workload: the sample of the paper (Sandwich 8.1).
const Usual = "sharegpt"

// Workloads returns the names that Named accepts.
func Workloads() []string {
	var names []string
	for _, w := range workloads {
		names = append(names, w.Name)
	}
	return names
}

// Named returns the workload of a name.
func Named(name string) (Workload, error) {
	for _, w := range workloads {
		if w.Name == name {
			return w, nil
		}
	}
	return Workload{}, fmt.Errorf("unknown trace %q; name a file of JSON lines or one of %s", name,
		strings.Join(Workloads(), ", "))
}

// Poisson draws n arrivals with a rate in requests per second. Equal seeds give requests of equal
// lengths at every rate.
func (w Workload) Poisson(n int, rate float64, seed uint64) Trace {
	times, sizes := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	t := make(Trace, n)
	at := 0.0
	for i := range t {
		at += times.ExpFloat64() / rate
		t[i] = w.request(sizes, time.Duration(at*float64(time.Second)))
	}
	return t
}

// Sequential draws n requests without times. Run with Options.Sequential starts each when the
// previous one has ended.
func (w Workload) Sequential(n int, seed uint64) Trace {
	sizes := rand.New(rand.NewPCG(seed, 2))
	t := make(Trace, n)
	for i := range t {
		t[i] = w.request(sizes, 0)
	}
	return t
}

func (w Workload) request(rng *rand.Rand, at time.Duration) Request {
	r := Request{At: at, Prompt: w.Prompt.draw(rng), Output: w.Output.draw(rng)}
	if rng.Float64() < w.Proactive {
		r.Class = sched.Proactive
	}
	return r
}
