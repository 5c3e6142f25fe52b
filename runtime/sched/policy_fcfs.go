package sched

import "time"

func init() { policies["fcfs"] = func() policy { return fcfs{} } }

// fcfs is continuous batching in order of arrival that ignores classes, as common engines do it:
// the baseline of Agent.xpu section 6.1. Prefill chunks and decode batches alternate.
type fcfs struct{ base }

func (fcfs) rules() rules { return rules{ignoresClass: true} }

func (fcfs) next(s *Scheduler, w work) (*request, time.Duration) { return s.within(w, Reactive), 0 }
