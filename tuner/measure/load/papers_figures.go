package load

import (
	"context"
	"fmt"
	"time"

	"sandwich/runtime/sched"
	"sandwich/tuner/replay"
)

// less returns how many percent less ours is than the baseline.
func less(base, ours float64) float64 {
	if base <= 0 {
		return 0
	}
	return 100 * (1 - ours/base)
}

// mean returns the mean of a time of requests in the paper's time.
func (r *xpuRun) mean(p *replay.Report, of func(*replay.Outcome) time.Duration) float64 {
	return r.seconds(p.Mean(of))
}

// figure8 serves proactive requests of one set at all rates, and compares throughput and the rate
// at which a token takes a second.
func (r *xpuRun) figure8(ctx context.Context, set string, index int) error {
	var latency [2][]float64 // seconds per token by arm and rate
	for i, rate := range r.Params.Rates {
		l := xpuLoad{set: set, proactive: rate}
		base, ours, err := r.pair(ctx, l)
		if err != nil {
			return err
		}
		b, o := r.mean(base, (*replay.Outcome).Normalized), r.mean(ours, (*replay.Outcome).Normalized)
		latency[0], latency[1] = append(latency[0], b), append(latency[1], o)
		r.add("8", l.String(), "latency per token, % less", b, o, less(b, o), "", len(ours.Outcomes))
		if i == len(r.Params.Rates)-1 {
			paper := ""
			if index == 1 && r.model.Index == 0 {
				paper = fmt.Sprintf("%g to %g times", r.Params.Throughput[0], r.Params.Throughput[1])
			}
			b, o := r.throughput(base), r.throughput(ours)
			r.add("8", l.String(), "tokens/s, times", b, o, o/b, paper, len(ours.Outcomes))
		}
	}
	paper := ""
	if index != 1 && r.model.Index == 0 {
		paper = fmt.Sprintf("%g %%", r.Params.More)
	}
	b, o := rateAt(1, r.Params.Rates, latency[0]), rateAt(1, r.Params.Rates, latency[1])
	if b > 0 && o > 0 {
		r.add("8", set, "requests/min at 1 s per token, % more", b, o, 100*(o/b-1), paper, 0)
	}
	return nil
}

// throughput returns the tokens of prompts and answers per second of the paper's time, from the
// first arrival to the last token.
func (r *xpuRun) throughput(p *replay.Report) float64 {
	tokens := 0
	for i := range p.Outcomes {
		if o := &p.Outcomes[i]; o.Finished() {
			tokens += o.Prompt + o.Tokens
		}
	}
	return float64(tokens) / r.seconds(p.Elapsed)
}

// rateAt returns the rate at which a latency reaches a value, by linear interpolation between the
// rates; 0 if it is not between two of them.
func rateAt(value float64, rates, latency []float64) float64 {
	for i := 1; i < len(latency); i++ {
		if a, b := latency[i-1], latency[i]; a < value && b >= value {
			return rates[i-1] + (rates[i]-rates[i-1])*(value-a)/(b-a)
		}
	}
	return 0
}

// figure9 serves mixed requests at all reactive rates, and the rates between which the paper says
// how reactive latency grows. Figure 10 divides the latencies at the middle reactive rate.
func (r *xpuRun) figure9(ctx context.Context) error {
	p, m := &r.Params, r.model.Index
	for i, rate := range p.Reactive {
		l := xpuLoad{set: "mixed", reactive: rate, proactive: p.Proactive}
		middle := i == len(p.Reactive)/2
		if !middle && !r.wants("9") {
			continue
		}
		base, ours, err := r.pair(ctx, l)
		if err != nil {
			return err
		}
		r.mixed(l, base, ours, i, m)
		if middle {
			r.breakdown(l, base, ours)
		}
	}
	if !r.wants("9") {
		return nil
	}
	var grown [2]float64
	middle := p.Reactive[len(p.Reactive)/2]
	for i, rate := range p.Growth[:2] {
		ours, err := r.serve(ctx, xpuOurs, xpuLoad{set: "mixed", reactive: middle, proactive: rate})
		if err != nil {
			return err
		}
		grown[i] = r.mean(ours.Of(sched.Reactive), (*replay.Outcome).Latency)
	}
	r.add("9", fmt.Sprintf("reactive %g/min, proactive %g to %g/min", middle, p.Growth[0], p.Growth[1]),
		"reactive latency, mean, % more", 0, grown[1], -less(grown[0], grown[1]), fmt.Sprintf("%g %%", p.Grown[m]), 0)
	return nil
}

func (r *xpuRun) wants(figure string) bool {
	for _, f := range r.Figures {
		if f == figure {
			return true
		}
	}
	return false
}

// mixed adds the rows of figure 9 for the reactive rate with an index.
func (r *xpuRun) mixed(l xpuLoad, base, ours *replay.Report, i, m int) {
	b, o := base.Of(sched.Reactive), ours.Of(sched.Reactive)
	n := len(o.Outcomes)
	x, y := r.mean(b, (*replay.Outcome).Latency), r.mean(o, (*replay.Outcome).Latency)
	r.add("9", l.String(), "reactive latency, mean, % less", x, y, less(x, y),
		fmt.Sprintf("%g %%", r.Params.Reduced[m][i]), n)
	x, y = r.seconds(b.Quantile(0.9, (*replay.Outcome).Latency)), r.seconds(o.Quantile(0.9, (*replay.Outcome).Latency))
	r.add("9", l.String(), "reactive latency, P90, % less", x, y, less(x, y), "more than of the mean", n)
	b, o = base.Of(sched.Proactive), ours.Of(sched.Proactive)
	paper := ""
	switch i {
	case 0:
		paper = fmt.Sprintf("%g %%", r.Params.Proactives[m][0])
	case len(r.Params.Reactive) - 1:
		paper = fmt.Sprintf("%g %%", r.Params.Proactives[m][1])
	}
	x, y = r.mean(b, (*replay.Outcome).Latency), r.mean(o, (*replay.Outcome).Latency)
	r.add("9", l.String(), "proactive latency, mean, % less", x, y, less(x, y), paper, len(o.Outcomes))
}

// breakdown adds the rows of figure 10: latencies divided into waiting, prefill and decode.
func (r *xpuRun) breakdown(l xpuLoad, base, ours *replay.Report) {
	prefill := func(o *replay.Outcome) time.Duration { return o.TTFT() - o.Pending() }
	decode := func(o *replay.Outcome) time.Duration { return o.End - o.First }
	for _, class := range []sched.Class{sched.Reactive, sched.Proactive} {
		b, o := base.Of(class), ours.Of(class)
		for _, part := range []struct {
			name  string
			of    func(*replay.Outcome) time.Duration
			paper string
		}{{"pending", (*replay.Outcome).Pending, fmt.Sprintf("%g s", r.Params.Pending)}, {"prefill", prefill, ""},
			{"decode", decode, ""}} {
			if class != sched.Reactive {
				part.paper = ""
			}
			x, y := r.mean(b, part.of), r.mean(o, part.of)
			r.add("10", l.String(), fmt.Sprintf("%s %s, mean, %% less", class, part.name), x, y, less(x, y), part.paper,
				len(o.Outcomes))
		}
	}
}
