package engine

import (
	"errors"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
	"sandwich/runtime/sched"
)

// TestServingAllocatesNoBuffers checks that all memory outside the Go heap is allocated and touched
// when an engine starts. Prompts, decode batches, full queues and a halted prefill allocate nothing
// more.
func TestServingAllocatesNoBuffers(t *testing.T) {
	skipUnderRace(t)
	e := byHand(t, tinyOptions(t))
	before, total := mem.Allocations(), mem.Total()
	held := false
	e.runner.Lead(func(l *pool.Leader) {
		for round := range 3 {
			e.enter(t, api.Request{Prompt: tinyPrompt(1, 90), MaxTokens: 6, IgnoreEOS: true, Class: sched.Proactive})
			act := e.driver.Next()
			e.enter(t, api.Request{Prompt: tinyPrompt(2, 200), MaxTokens: 20, IgnoreEOS: true})
			e.run(l, act)
			held = held || act.Kind == sched.Prefill && e.cores.next < e.runner.Ops()
			for i := range 5 {
				e.enter(t, api.Request{Prompt: tinyPrompt(uint64(round+i), 30*(i+1)), MaxTokens: 9, IgnoreEOS: true})
			}
			for act := e.forward(l); act != nil; act = e.forward(l) {
				continue
			}
		}
	})
	if !held {
		t.Error("no forward was ever held, so that the second set of activations was not used")
	}
	if n := mem.Allocations() - before; n != 0 || mem.Total() != total {
		t.Errorf("serving made %d buffers, %d bytes", n, mem.Total()-total)
	}
	a, sets := e.runner.Assembly(), e.runner.Activations()
	survey, err := mem.SurveyOf(0, a.Weights.Memory(0), a.KV.Memory(0), sets[0].Memory(0), sets[1].Memory(0))
	if err != nil {
		t.Fatal(err)
	}
	if present := int64(0); survey.Known && mem.Mapped {
		for _, n := range survey.On() {
			present += n
		}
		if present != survey.Bytes() {
			t.Errorf("%d of %d bytes are present", present, survey.Bytes())
		}
	}
}

func TestPlacementOfClosedEngine(t *testing.T) {
	e := open(t, tinyOptions(t))
	places, err := e.Placement()
	if err != nil || len(places) != 3 {
		t.Errorf("%d places, %v", len(places), err)
	}
	e.Close()
	if _, err := e.Placement(); !errors.Is(err, api.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
