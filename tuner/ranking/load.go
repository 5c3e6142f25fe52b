package ranking

import (
	"fmt"
	"slices"
	"time"

	"sandwich/tuner/candidates"
	"sandwich/tuner/replay"
)

// Load is the set of requests that configurations are ranked by.
type Load struct {
	Trace      replay.Trace // from a file; nil: Requests of Workload
	Name       string       // of the file
	Workload   replay.Workload
	Requests   int     // 0: 90, the sample size of the paper (Sandwich 8.1)
	Rate       float64 // requests per second; 0: the rate that loads the plain configuration by busyShare
	Sequential bool    // each request arrives when the previous one ends; Rate is ignored
	Seed       uint64

	read bool // requests are complete when their prompts are read
	left int  // requests of the file that are left out
}

const (
	paperRequests = 90
	busyShare     = 0.7
	// Bounds of the forwards and requests of a file that a ranking replays. Later requests are left
	// out.
	maxLoad     = 600000
	maxRequests = 10000
)

// complete draws the requests. Their times are those of one request per second until under sets the
// rate. Requests to a pooled model end when their text is read.
func (l *Load) complete(pooled bool) error {
	if l.read = pooled; pooled && l.Trace != nil {
		l.Trace = onlyRead(l.Trace)
	}
	if l.Requests == 0 {
		l.Requests = paperRequests
	}
	if l.Trace != nil {
		if len(l.Trace) == 0 {
			return fmt.Errorf("the trace has no request")
		}
		l.cut()
		return nil
	}
	if l.Workload.Name == "" {
		return fmt.Errorf("a ranking needs a trace")
	}
	l.Trace = l.drawn(1)
	return nil
}

// drawn returns the requests of the workload at a rate.
func (l *Load) drawn(rate float64) replay.Trace {
	t := l.Workload.Poisson(l.Requests, rate, l.Seed)
	if l.read {
		return onlyRead(t)
	}
	return t
}

// onlyRead returns requests that are complete when their prompts are read.
func onlyRead(t replay.Trace) replay.Trace {
	out := slices.Clone(t)
	for i := range out {
		out[i].Output = 1
	}
	return out
}

// cut keeps the first requests, as many as a ranking can replay.
func (l *Load) cut() {
	sum := 0
	for i, r := range l.Trace {
		if sum += forwards(r); (sum > maxLoad || i == maxRequests) && i > 0 {
			l.left = len(l.Trace) - i
			l.Trace = l.Trace[:i]
			return
		}
	}
}

// forwardTokens is the number of prompt tokens that count as one forward.
const forwardTokens = 512

// forwards returns the approximate number of forwards of a request alone.
func forwards(r replay.Request) int { return r.Output + r.Prompt/forwardTokens }

// forwards returns the approximate number of forwards of all requests, each alone, at least 1.
func (l *Load) forwards() int {
	sum := 1
	for _, r := range l.Trace {
		sum += forwards(r)
	}
	return sum
}

// longest returns the maximum number of positions of a request.
func (l *Load) longest() int {
	largest := 1
	for _, r := range l.Trace {
		largest = max(largest, r.Prompt+r.Output)
	}
	return largest
}

// seconds returns the seconds that a configuration takes for all requests, one after the other.
func (l *Load) seconds(c *candidates.Cost, chunk int) float64 {
	sum := time.Duration(0)
	for _, r := range l.Trace {
		for pos := 0; pos < r.Prompt; pos += chunk {
			n := min(chunk, r.Prompt-pos)
			sum += c.Prefill(pos, n, pos+n == r.Prompt)
		}
		if r.Output > 1 {
			sum += time.Duration(c.DecodeSeconds(1, r.Prompt+r.Output/2) * float64(r.Output-1) * float64(time.Second))
		}
	}
	return sum.Seconds()
}

// under sets the arrival times. A trace of a file keeps its own; other loads get a rate that is the
// same for all configurations.
func (l *Load) under(plain float64) Load {
	out := *l
	if l.Name != "" || l.Sequential {
		return out
	}
	out.Rate = l.Rate
	if out.Rate == 0 {
		out.Rate = busyShare * float64(len(l.Trace)) / plain
	}
	out.Trace = l.drawn(out.Rate)
	return out
}

// String describes the load.
func (l *Load) String() string {
	switch {
	case l.left > 0:
		return fmt.Sprintf("the first %d requests of %s, without the %d later ones", len(l.Trace), l.Name, l.left)
	case l.Name != "":
		return fmt.Sprintf("%d requests of %s", len(l.Trace), l.Name)
	case l.Sequential:
		return fmt.Sprintf("%d requests of %s, one after the other", len(l.Trace), l.Workload.Name)
	}
	return fmt.Sprintf("%d requests of %s, %.3g per second", len(l.Trace), l.Workload.Name, l.Rate)
}
