package replay

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"sandwich/runtime/sched"
)

// Set describes the request lengths of a public data set by statistics. The module contains no data
// of it.
type Set struct {
	Name           string
	Class          sched.Class // class for which Agent.xpu section 6.1 uses it
	Prompt, Output Lengths
	Source         string // of the means; "assumed" where none was found. Spreads are assumed throughout.
}

// The sets of Agent.xpu section 6.1, whose figure 7 shows their distributions without numbers.
var sets = []Set{
	{"proactivebench", sched.Proactive, meanOf(400, 0.6, 1, 2048), meanOf(60, 0.6, 1, 512), "assumed"},
	{"samsum", sched.Proactive, meanOf(94, 0.7, 1, 1024), meanOf(20, 0.5, 1, 128),
		"assumed, about the dialogues of SAMSum"},
	{"cnn-dailymail", sched.Proactive, meanOf(781, 0.5, 1, 4096), meanOf(56, 0.4, 1, 256),
		"781 and 56 tokens: See et al. 2017, arXiv 1704.04368, section 4"},
	{"lmsys", sched.Reactive, meanOf(69.5, 1.1, 1, 2048), meanOf(214.5, 0.8, 1, 1024),
		"69.5 and 214.5 tokens: Zheng et al. 2023, arXiv 2309.11998, table 1"},
	{"mtrag", sched.Reactive, meanOf(1500, 0.5, 1, 4096), meanOf(120, 0.6, 1, 512), "assumed"},
	{"bfcl", sched.Reactive, meanOf(500, 0.6, 1, 2048), meanOf(50, 0.5, 1, 256), "assumed"},
}

// mixed names all sets of a class, each drawn equally often.
const mixed = "mixed"

// SetsOf returns the set of a name, or all sets of a class for "mixed".
func SetsOf(name string, c sched.Class) (out []Set, err error) {
	names := []string{mixed}
	for _, s := range sets {
		if names = append(names, s.Name); s.Name == name || name == mixed && s.Class == c {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		err = fmt.Errorf("unknown set %.40q; choose one of %s", name, strings.Join(names, ", "))
	}
	return out, err
}

// Arrivals are random requests of one class.
type Arrivals struct {
	Class sched.Class
	Rate  float64 // per minute; 0: none
	Sets  []Set   // one is drawn for each request
}

// Poisson draws the arrivals of a period, each class from its own sequence, so that a change of one
// class does not change the others. Prompts and answers are shortened to fit the context.
func Poisson(during time.Duration, seed uint64, context int, of ...Arrivals) (t Trace) {
	for i, a := range of {
		times, sizes := rand.New(rand.NewPCG(seed, uint64(10+i))), rand.New(rand.NewPCG(seed, uint64(20+i)))
		for at := 0.0; a.Rate > 0; {
			at += times.ExpFloat64() * 60 / a.Rate
			if at >= during.Seconds() {
				break
			}
			s := a.Sets[sizes.IntN(len(a.Sets))]
			r := Request{At: time.Duration(at * float64(time.Second)), Class: a.Class, Prompt: s.Prompt.draw(sizes),
				Output: s.Output.draw(sizes)}
			t = append(t, r.within(context))
		}
	}
	slices.SortStableFunc(t, func(a, b Request) int { return cmp.Compare(a.At, b.At) })
	return t
}

// within shortens a request to a context.
func (r Request) within(context int) Request {
	r.Output = max(1, min(r.Output, context/2))
	r.Prompt = max(1, min(r.Prompt, context-r.Output))
	return r
}

// Within shortens the requests of a trace to a context.
func (t Trace) Within(context int) Trace {
	out := make(Trace, len(t))
	for i, r := range t {
		out[i] = r.within(context)
	}
	return out
}

// Faster returns the same requests at a multiple of their rate.
func (t Trace) Faster(times float64) Trace {
	out := make(Trace, len(t))
	for i, r := range t {
		r.At = time.Duration(float64(r.At) / times)
		out[i] = r
	}
	return out
}
