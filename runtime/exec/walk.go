package exec

import (
	"time"

	"sandwich/runtime/exec/attention"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// walker is one worker in a forward: where it is in the list of steps, and the groups it works in.
type walker struct {
	*Executor
	w    *pool.Worker
	at   position // next step
	next int      // index of it
	all  tp.Group // all active workers, on the operands of the first rank
	own  tp.Group // the workers of its rank; empty with one rank
}

// walk runs the steps of a forward on a worker.
func (e *Executor) walk(w *pool.Worker) {
	e.walkSteps(w)
	if w.ID() == 0 {
		e.ended = time.Now()
	}
}

func (e *Executor) walkSteps(w *pool.Worker) {
	k := walker{Executor: e, w: w}
	if !k.start() {
		return
	}
	for k.more() {
		p := k.advance()
		k.run(p)
		switch s := e.scopeAfter(p, k.more()); {
		case w.Tolerant():
			k.meetTolerant(s)
		case s == scopeRank:
			w.LocalBarrier()
			continue // no halt inside a subgraph
		case s == scopeSum:
			k.sum()
		default:
			k.meet()
		}
		if e.halted(k.next) {
			return
		}
	}
}

// start finds the first step: that of the forward, or that at which the worker rejoins its team
// after its CPU was taken away. It reports false if the forward has halted before that step.
func (k *walker) start() bool {
	first, rejoins := k.w.Resumed()
	switch {
	case !rejoins:
		first = k.forward.from
		k.began[k.w.Index()] = time.Now()
		k.throughput.Join(k.w)
	case k.halted(first):
		return false
	default:
		k.throughput.Read(k.w, first)
	}
	k.all = k.groupOfAll(k.w)
	if k.groups != nil {
		k.w.Use(k.groups.grouping)
		k.own = k.groupOfRank(k.w, k.w.Group().ID())
	}
	k.next, k.at = first, k.bufs.locate(first)
	return true
}

// more reports whether steps are left.
func (k *walker) more() bool { return k.at.op < k.forward.end }

// advance returns the next step and moves on to the one after it.
func (k *walker) advance() position {
	p := k.at
	k.at = k.bufs.after(p)
	k.next++
	return p
}

// meet waits for all workers after a step. Worker 0 asks the gate.
func (k *walker) meet() {
	if k.w.ID() == 0 {
		k.prewarm()
		k.ask(k.next, k.next)
	}
	k.w.BarrierTo(k.next, k.asking)
	k.throughput.Read(k.w, k.next)
}

// meetTolerant waits for all workers in preemption-tolerant mode, which have a barrier after every
// step. The last one to arrive asks the gate if the forward may halt there.
func (k *walker) meetTolerant(s scope) {
	asking := k.asking
	if s != scopeAll {
		asking = nil
	}
	k.w.BarrierTo(k.next, asking)
	k.throughput.Read(k.w, k.next)
}

// sum publishes the summands of the worker's rank and runs the gather that follows, in which all
// ranks wait for each other by flags. The team does not enter preemption-tolerant mode in between.
func (k *walker) sum() {
	if k.w.ID() == 0 {
		k.prewarm()
		k.ask(k.next, k.next+1)
	}
	rank := k.w.Group().ID()
	k.groups.sum.Publish(k.w, rank, k.own.N, &k.partials)
	gather := k.advance()
	k.groups.sum.Finish(k.w, rank, &k.partials, k.next, k.after[gather.op])
}

// prewarm prepares the executor of the next forward after the last step, while the other workers
// still work on it.
func (k *walker) prewarm() {
	if !k.more() {
		k.successor.prewarmLayout()
	}
}

// run executes the worker's part of a step: with all workers, or with those of its rank. In
// preemption-tolerant mode it helps every rank, because the only worker of one may be descheduled.
func (k *walker) run(p position) {
	switch {
	case !k.ops[p.op].Mode.PerRank():
		k.runIn(&k.all, p)
	case k.w.Tolerant():
		k.runEachRank(p)
	default:
		k.runIn(&k.own, p)
	}
}

// runIn executes a group's part of a step. If weights need quantized activations, they are
// quantized first.
func (e *Executor) runIn(g *tp.Group, p position) {
	if e.quantize(g, p) {
		g.Barrier()
	}
	e.do(g, p)
}

// runEachRank is runIn for every rank, the worker's own first.
func (k *walker) runEachRank(p position) {
	home, quantized := k.w.Group().ID(), false
	for i := range k.ranks {
		g := k.groupOfRank(k.w, (home+i)%len(k.ranks))
		quantized = k.quantize(&g, p) || quantized
	}
	if quantized {
		k.w.Barrier()
	}
	for i := range k.ranks {
		g := k.groupOfRank(k.w, (home+i)%len(k.ranks))
		k.do(&g, p)
	}
}

// quantize quantizes the inputs of a step's products. It reports whether a barrier must follow.
func (e *Executor) quantize(g *tp.Group, p position) bool {
	op := &g.Shard.Model.Ops[p.op]
	return e.ranks[g.Rank].products.Quantize(g, op, e.inputRows(op), p.step)
}

// inputRows returns the number of rows that an op reads.
func (e *Executor) inputRows(op *model.Op) int {
	switch {
	case op.Kind == model.OpExperts:
		return e.bufs.routes.Rows(e.forward.rows)
	case op.Wanted:
		return len(e.forward.batch.LogitRows)
	}
	return e.forward.rows
}

// do executes a group's part of a step, whose inputs are quantized.
func (e *Executor) do(g *tp.Group, p position) {
	op, how, r := &g.Shard.Model.Ops[p.op], &e.ops[p.op], &e.ranks[g.Rank]
	switch op.Kind {
	case model.OpEmbed:
		e.rowwise.Embed(g, op)
	case model.OpNorm:
		e.rowwise.Norm(g, op)
	case model.OpMatMul:
		if p.step.Count > 1 {
			r.products.MatMulStep(g, op, e.inputRows(op), how.AddsToX, p.step)
		} else {
			r.products.MatMul(g, p.op, op, e.inputRows(op), how.AddsToX)
		}
	case model.OpRotate:
		e.attention.Rotate(g, r.attention, op, how.Rope)
	case model.OpAttention:
		r.attention.RunOp(g, op, p.step)
	case model.OpAddNorm:
		if how.AddsToX {
			e.rowwise.Norm(g, op)
		} else {
			e.rowwise.AddNorm(g, op, how.FirstOnly)
		}
	case model.OpGather:
		e.rowwise.Gather(g, op)
	case model.OpRoute:
		e.bufs.routes.Route(g, op, e.forward.rows)
	case model.OpDispatch:
		e.bufs.routes.Dispatch(g, op, e.forward.rows)
	case model.OpExperts:
		e.bufs.routes.Experts(g, r.products, op, p.step)
	case model.OpCombine:
		e.bufs.routes.Combine(g, op, e.forward.rows)
	case model.OpRowNorm:
		e.rowwise.RowNorm(g, op)
	case model.OpConv:
		e.state.Conv(g, p.op, op)
	case model.OpDelta:
		e.state.Delta(g, p.op, op, p.step)
	case model.OpOutGate:
		e.state.OutGate(g, op)
	case model.OpCap:
		e.rowwise.Cap(g, op)
	case model.OpInputs:
		e.rowwise.MakeInputs(g, op)
	case model.OpGate:
		e.rowwise.GateInput(g, op)
	case model.OpHeads:
		if len(op.W) == 0 {
			attention.CopyHeads(g, op, e.forward.rows)
		} else {
			r.products.Heads(g, op, e.forward.rows)
		}
	case model.OpLatent:
		e.attention.Latent(g, r.attention, op, how.Rope)
	case model.OpPool:
		e.rowwise.Pool(g, op)
	case model.OpSoftmax:
		e.rowwise.Softmax(g, op)
	default:
		panic("exec: op " + op.Kind.String() + " is not computed")
	}
}
