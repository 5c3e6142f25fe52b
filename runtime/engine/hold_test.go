package engine

import (
	"fmt"
	"slices"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/runtime/api"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/pool"
	"sandwich/runtime/sched"
)

// TestHeldForward halts a prefill after every single op, runs forwards of another sequence in
// between, and expects the logits of one that ran through, to the bit.
func TestHeldForward(t *testing.T) {
	skipUnderRace(t)
	for _, c := range []struct {
		arch, compute string
		typ           gguf.Type
	}{{"qwen3", "f32", gguf.F32}, {"qwen3", "f32", gguf.Q8_0}, {"qwen3", "int8", gguf.Q8_0}, {"qwen3moe", "f32",
		gguf.F32}, {"qwen3moe", "int8", gguf.Q8_0}} {
		t.Run(c.arch+"/"+c.typ.String()+"/"+c.compute, func(t *testing.T) {
			file := smallModel(t, c.arch, c.typ)
			r := openTestRunner(t, file, heuristic.Options{Compute: c.compute, Threads: 2}, 64)
			defer r.Close()
			if err := r.Reserve(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.Lead(func(l *pool.Leader) { checkHeld(t, r, l, r.Ops()-1, nil) })
			for _, steps := range []uint16{3, 17} {
				cuts := make([]uint16, r.Ops())
				places := r.Ops() - 1
				for i := range cuts {
					if exec.Cuttable(&r.Model.Ops[i]) {
						cuts[i] = steps
						places += int(steps) - 1
					}
				}
				r.Lead(func(l *pool.Leader) { checkHeld(t, r, l, places, cuts) })
			}
			if held, once := r.Memory().Activations, int64(r.Assembly().Buffers.Bytes()); held != 2*once {
				t.Errorf("activations of %d bytes, not two sets of %d", held, once)
			}
		})
	}
}

// checkHeld expects so many places where a forward whose ops are cut can halt.
func checkHeld(t *testing.T, r *forward.Runner, l *pool.Leader, places int, cuts []uint16) {
	table := func(lo, hi int) kvcache.Tables {
		var ids []kvcache.BlockID
		for i := lo; i < hi; i++ {
			ids = append(ids, kvcache.BlockID(i))
		}
		return slices.Repeat(kvcache.Tables{ids}, len(r.Assembly().Stores))
	}
	b := kvcache.Batch{Prefill: true, Tokens: exactPrompt(1)[:50], LogitRows: []int32{7, 49},
		Spans: []kvcache.Span{{Rows: 50, Tables: table(0, 1)}}}
	if _, err := r.Forward(l, &b, 0, nil); err != nil { // on set 0; halted and resumed on set 1
		t.Error(err)
		return
	}
	want := [][]float32{slices.Clone(r.Logits(0)), slices.Clone(r.Logits(1))}

	stop := &forwardGate{}
	stop.stop.Store(true)
	other := kvcache.Batch{Prefill: true, Tokens: exactPrompt(2)[:24], LogitRows: []int32{23},
		Spans: []kvcache.Span{{Rows: 24, Tables: table(1, 3)}}}
	step := kvcache.Batch{Tokens: []int32{3}, LogitRows: []int32{0}, Spans: []kvcache.Span{{Rows: 1, Pos: 24,
		Tables: table(1, 3)}}}
	halts, end := 0, r.Ops()
	for _, n := range cuts {
		end += max(1, int(n)) - 1
	}
	r.Use(1)
	r.Cut(cuts)
	for at := 0; at < end; {
		r.Use(1)
		next, err := r.Forward(l, &b, at, stop)
		if err != nil || next <= at {
			t.Errorf("from op %d to op %d: %v", at, next, err)
			return
		}
		if at = next; at == end {
			break
		}
		halts++
		r.Use(0)
		for _, between := range []*kvcache.Batch{&other, &step} {
			if next, err := r.Forward(l, between, 0, nil); next != r.Ops() {
				t.Errorf("a forward in between ended at op %d: %v", next, err)
			}
		}
	}
	if halts != places {
		t.Errorf("halted %d times, want %d, in %d ops", halts, places, r.Ops())
	}
	same(t, fmt.Sprintf("halted after every op, cuts %d", slices.Max(append(cuts, 0))), want,
		[][]float32{r.Logits(0), r.Logits(1)})
}

// TestReactiveInterrupts checks that a reactive request halts a proactive prefill at the next op,
// and that the prefill resumes there and gives the tokens that it gives alone.
func TestReactiveInterrupts(t *testing.T) {
	background := api.Request{Prompt: tinyPrompt(1, 90), MaxTokens: 6, IgnoreEOS: true, Class: sched.Proactive}
	urgent := api.Request{Prompt: tinyPrompt(2, 40), MaxTokens: 6, IgnoreEOS: true}
	e := open(t, tinyOptions(t))
	wantBackground, _ := generate(t, e, background)
	wantUrgent, _ := generate(t, e, urgent)

	e = byHand(t, tinyOptions(t))
	e.runner.Lead(func(l *pool.Leader) {
		slow := e.enter(t, background)
		e.forward(l) // the first chunk
		act := e.driver.Next()
		if act == nil || act.ID != slow.id || act.Kind != sched.Prefill {
			t.Errorf("in flight is %+v, not the background's prefill", act)
			return
		}
		set := act.Set
		quick := e.enter(t, urgent)
		e.run(l, act)
		if slow.resumeAt != 1 {
			t.Errorf("the prefill halted at op %d, want 1", slow.resumeAt)
		}
		if act := e.forward(l); act == nil || act.Kind != sched.Prefill || act.ID != quick.id || act.Set == set {
			t.Errorf("then ran %+v, not the urgent prefill on another set than %d", act, set)
		}
		resumed := false
		for act := e.forward(l); act != nil; act = e.forward(l) {
			resumed = resumed || act.Kind == sched.Resume && act.ID == slow.id && act.Set == set
		}
		if !resumed {
			t.Error("the halted prefill was not resumed")
		}
		for _, c := range []struct {
			j    *job
			want []int32
		}{{slow, wantBackground}, {quick, wantUrgent}} {
			if got, end := c.j.drained(); !slices.Equal(got, c.want) || end == nil || end.reason != "length" {
				t.Errorf("request %d: %v, want %v", c.j.id, got, c.want)
			}
		}
	})
	if st := e.Stats(); st.Scheduler.Stops < 1 {
		t.Error("no prefill was halted")
	}
	checkIdle(t, e)
}

// TestHeldIsDropped checks that a halted prefill does not resume if its request is cancelled, and
// starts again if its blocks are taken; that request still gets its tokens.
func TestHeldIsDropped(t *testing.T) {
	background := api.Request{Prompt: tinyPrompt(1, 150), MaxTokens: 4, IgnoreEOS: true, Class: sched.Proactive}
	o := tinyOptions(t)
	o.Blocks = 5 // of 64: background needs 3, the urgent one below 4
	want, _ := generate(t, open(t, o), background)
	halt := func(e *Engine, l *pool.Leader, urgent api.Request) *job {
		slow := e.enter(t, background)
		act := e.driver.Next()
		e.enter(t, urgent)
		e.run(l, act)
		if slow.resumeAt != 1 {
			t.Errorf("the prefill halted at op %d, want 1", slow.resumeAt)
		}
		return slow
	}
	short := api.Request{Prompt: tinyPrompt(2, 9), MaxTokens: 2, IgnoreEOS: true}
	long := api.Request{Prompt: tinyPrompt(2, 230), MaxTokens: 2, IgnoreEOS: true}

	e := byHand(t, o)
	e.runner.Lead(func(l *pool.Leader) {
		slow := halt(e, l, short)
		e.cancel(slow)
		for act := e.forward(l); act != nil; act = e.forward(l) {
			if act.ID == slow.id {
				t.Errorf("the prefill of a client that hung up went on: %+v", act)
			}
		}
	})
	checkIdle(t, e)

	e = byHand(t, o)
	e.runner.Lead(func(l *pool.Leader) {
		slow := halt(e, l, long)
		for act := e.forward(l); act != nil; act = e.forward(l) {
			if act.Kind == sched.Resume {
				t.Errorf("the prefill that lost its blocks was resumed: %+v", act)
			}
		}
		if got, _ := slow.drained(); !slices.Equal(got, want) {
			t.Errorf("computed again: %v, want %v", got, want)
		}
	})
	if st := e.Stats(); st.Scheduler.Preemptions != 1 {
		t.Errorf("%d sequences lost their blocks, want 1", st.Scheduler.Preemptions)
	}
	checkIdle(t, e)
}
