package exec

import (
	"time"

	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// walk is what each worker does. Between two gathers the ranks wait for nobody but their own,
// unless an op is cut; at a gather they meet by the flags of the sum. On guard all walk together.
func (e *Executor) walk(w *pool.Worker) {
	e.walkSteps(w)
	if w.ID() == 0 {
		e.ended = time.Now()
	}
}

func (e *Executor) walkSteps(w *pool.Worker) {
	first, back := w.Resumed()
	if !back {
		first = e.from
		e.scratch[w.Index()].began = time.Now()
		e.pacer.join(w)
	} else if e.halted(first) {
		return
	} else {
		e.pacer.read(w, first)
	}
	all, own := e.together(w), group{}
	if e.groups != nil {
		w.Use(e.groups.grouping)
		own = e.apart(w, w.Group().ID())
	}
	i, c := e.bufs.locate(first)
	for next, summing := first+1, false; i < e.end; next++ {
		op, at := i, c
		i, c = e.bufs.after(i, c)
		if summing { // and nothing is asked of the worker meanwhile, whose team may go on its guard
			e.sum.Finish(w, w.Group().ID(), &e.partials, next, e.after[op])
			summing = false
		} else {
			e.step(&all, &own, op, at)
			meets := e.behind(op, at, i < e.end)
			if w.Guarded() {
				e.passGuarded(w, next, meets)
			} else if summing = meets == meetSumming; !e.pass(w, next, i < e.end, meets, own.n) {
				continue
			}
		}
		if e.halted(next) {
			return
		}
	}
}

// pass is the meeting behind a step; false where not all have met.
func (e *Executor) pass(w *pool.Worker, next int, follows bool, meets meeting, n int) bool {
	if meets == meetOwn {
		w.LocalBarrier()
		return false
	}
	if w.ID() == 0 && !follows {
		e.heir.rehearse()
	}
	if meets == meetSumming {
		if w.ID() == 0 {
			e.ask(next, next+1)
		}
		e.sum.Publish(w, w.Group().ID(), n, &e.partials)
		return false
	}
	if w.ID() == 0 {
		e.ask(next, next)
	}
	w.BarrierTo(next, e.asking)
	e.pacer.read(w, next)
	return true
}

// passGuarded is pass of a team on its guard, which meets behind every step.
func (e *Executor) passGuarded(w *pool.Worker, next int, meets meeting) {
	asking := e.asking
	if meets != meetAll {
		asking = nil
	}
	w.BarrierTo(next, asking)
	e.pacer.read(w, next)
}

// step is the worker's part in op i, or in a cut of it: with all others, or with its own rank. On
// guard it helps every rank, so that of none the only worker is lost.
func (e *Executor) step(all, own *group, i int, c portion) {
	switch {
	case !e.steps[i].mode.apart():
		e.do(all, i, c)
	case own.w.Guarded():
		e.doEach(own, i, c)
	default:
		e.do(own, i, c)
	}
}

// do is the group's part in op i, or in a cut of it.
func (e *Executor) do(g *group, i int, c portion) {
	if e.round(g, &g.shard.model.Ops[i], c) {
		g.barrier()
	}
	e.run(g, i, c)
}

// doEach is do for every rank, the worker's own first.
func (e *Executor) doEach(own *group, i int, c portion) {
	home, rounded := own.w.Group().ID(), false
	for k := range e.ranks {
		g := e.apart(own.w, (home+k)%len(e.ranks))
		rounded = e.round(&g, &g.shard.model.Ops[i], c) || rounded
	}
	if rounded {
		own.w.Barrier()
	}
	for k := range e.ranks {
		g := e.apart(own.w, (home+k)%len(e.ranks))
		e.run(&g, i, c)
	}
}

// run is what do does once the inputs are rounded.
func (e *Executor) run(g *group, i int, c portion) {
	op, s := &g.shard.model.Ops[i], e.steps[i]
	switch op.Kind {
	case model.OpEmbed:
		e.embed(g, op)
	case model.OpNorm:
		e.norm(g, op)
	case model.OpMatMul:
		if c.of > 1 {
			e.cutMatMul(g, op, s.adds, c)
		} else {
			e.matMul(g, i, op, s.adds)
		}
	case model.OpRotate:
		e.rotateHeads(g, op, s.rope)
	case model.OpAttention:
		g.rank.attend.run(g.w, op.Layer, scoresOf(op), g.bufs.rowsOf(model.BufQ), g.bufs.rowsOf(model.BufAtt), c)
	case model.OpAddNorm:
		if s.adds {
			e.norm(g, op)
		} else {
			e.addNorm(g, op, s.alone)
		}
	case model.OpGather:
		e.gather(g, op.Scale)
	case model.OpRoute:
		e.route(g, op)
	case model.OpDispatch:
		e.dispatch(g, op)
	case model.OpExperts:
		e.experts(g, op, c)
	case model.OpCombine:
		e.combine(g, op)
	case model.OpRowNorm:
		e.rowNorm(g, op)
	case model.OpConv:
		e.conv(g, i, op)
	case model.OpDelta:
		e.delta(g, i, op, c)
	case model.OpOutGate:
		e.outGate(g, op)
	case model.OpCap:
		e.capRows(g, op)
	case model.OpInputs:
		e.makeInputs(g, op)
	case model.OpGate:
		e.gateInput(g, op)
	case model.OpHeads:
		e.heads(g, op)
	case model.OpLatent:
		e.latent(g, op, s.rope)
	case model.OpPool:
		e.pool(g, op)
	case model.OpSoftmax:
		e.softmax(g, op)
	}
}
