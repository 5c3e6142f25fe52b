package sched

import "time"

func init() { policies["fcfs"] = fcfs{} }

// fcfs is continuous batching in order of arrival, blind to the class, as engines do that
// know of none: the baseline of Agent.xpu section 6.1. Prefill chunks and decode batches
// alternate.
type fcfs struct{}

func (fcfs) rules() rules { return rules{blind: true} }

func (fcfs) next(s *Scheduler, w work) (*request, time.Duration) { return s.within(w, Reactive), 0 }

func (fcfs) batch(s *Scheduler, ready []*request) ([]*request, int) { return inOrder(s, ready) }

func (fcfs) victim(s *Scheduler) *request { return lowest(s) }

func (fcfs) halts(*Scheduler, *request) bool { return false }

// within is the next forward among those of one class: a prefill, or nil for a decode batch.
func (s *Scheduler) within(w work, c Class) *request {
	if w.decode[c] > 0 && s.sinceChunk < s.cfg.DecodesBetweenChunks {
		return nil
	}
	return w.prefill[c]
}
