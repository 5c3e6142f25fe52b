package pool

import (
	"slices"
	"time"

	"sandwich/runtime/pool/internal/sys"
)

// Lead runs fn on the thread of worker 0 and returns when it returns. From there Leader.Run reaches
// the other workers without waking or displacing a thread; an engine's loop runs there. fn may
// block like any goroutine. Other calls of Run, Lead and the setters, and leaders of LeadShared,
// wait meanwhile. A panic of fn comes back as a panic with a *Panic.
func (p *Pool) Lead(fn func(l *Leader)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mustBeOpen()
	l := &p.leader
	l.fn, l.failed = fn, nil
	p.adopt(p.team)
	l.done.Add(1)
	l.w.ring(cmdLead)
	l.done.Wait()
	l.fn = nil
	p.adopt(p.team)
	if l.failed != nil {
		panic(l.failed)
	}
}

// lead executes cmdLead on worker 0.
func (w *Worker) lead() {
	l := &w.pool.leader
	returned := false
	defer func() {
		if !returned {
			l.fail(w, recover())
		}
		l.done.Done()
	}()
	l.fn(l)
	returned = true
}

// fail records why fn did not return; a *Panic of a run inside it is kept as it is.
func (l *Leader) fail(w *Worker, value any) {
	if e, ok := value.(*Panic); ok {
		l.failed = e
	} else if l.failed == nil {
		l.failed = w.newPanic(value)
	}
}

// Run is Pool.Run with the leader as one of the workers. If worker 0 is not active, the leader only
// waits.
func (l *Leader) Run(fn func(w *Worker)) { l.run(fn, false) }

func (l *Leader) run(fn func(w *Worker), tolerant bool) {
	if l.shared && !l.has {
		panic("pool: a leader runs without Take")
	}
	p, w := l.p, l.w
	began := p.now()
	p.dispatch(fn, 0, tolerant)
	settled := false
	defer func() {
		if !settled { // fn ended this goroutine: the others must still be waited for
			p.await(&w.waiter)
			l.failed = p.settle(began)
		}
	}()
	if p.team.idOf[0] >= 0 && p.tolerant {
		w.takePart()
	} else if p.team.idOf[0] >= 0 {
		w.enter()
		w.execute(fn)
	}
	p.await(&w.waiter)
	e := p.settle(began)
	settled = true
	if e != nil {
		panic(e)
	}
}

// SetActive is Pool.SetActive.
func (l *Leader) SetActive(workers []int) (time.Duration, error) { return l.p.setActive(workers) }

// RunTolerant is Pool.RunTolerant with the leader as one of the workers.
func (l *Leader) RunTolerant(fn func(w *Worker)) { l.run(fn, true) }

// LeadShared runs fn on a thread of its own, which is bound to the PU of worker 0, and returns when
// it returns. Several leaders can share a pool: from Take to Give a leader has the pool, and its
// thread is worker 0. Meanwhile other leaders and calls of Run, Lead and the setters wait. A panic
// of fn comes back as a panic with a *Panic.
func (p *Pool) LeadShared(fn func(l *Leader)) {
	l := &Leader{p: p, shared: true}
	l.done.Add(1)
	go sys.OwnThread(func() { l.serve(fn) })
	l.done.Wait()
	if l.failed != nil {
		panic(l.failed)
	}
}

// serve runs fn on the calling thread.
func (l *Leader) serve(fn func(*Leader)) {
	defer l.done.Done()
	l.w = l.p.enrol()
	defer l.p.dismissLeader(l.w)
	l.w.openAccounts()
	defer l.w.closeAccounts()
	returned := false
	defer func() {
		if !returned {
			l.fail(l.w, recover())
		}
		l.Give()
	}()
	fn(l)
	returned = true
}

// enrol returns a worker 0 whose thread is the calling one, and binds it.
func (p *Pool) enrol() *Worker {
	main := p.workers[0]
	w := &Worker{class: main.class, slow: main.slow}
	w.thread.Store(int64(sys.ThreadID()))
	p.placing.Lock()
	defer p.placing.Unlock()
	w.waiter.init(p, main.PU(), main.spin)
	if p.pinned {
		// It succeeded for the main worker. If the cpuset shrank since, the thread runs wherever
		// the system lets it.
		_ = sys.Pin(0, w.PU())
	}
	p.shared.mu.Lock()
	defer p.shared.mu.Unlock()
	p.shared.workers = append(p.shared.workers, w)
	return w
}

// dismissLeader forgets a worker of enrol and keeps its counts.
func (p *Pool) dismissLeader(w *Worker) {
	p.placing.Lock() // its thread is not bound any more
	defer p.placing.Unlock()
	p.shared.mu.Lock()
	defer p.shared.mu.Unlock()
	p.shared.workers = slices.DeleteFunc(p.shared.workers, func(o *Worker) bool { return o == w })
	p.shared.ended.add(w.stats())
}

// Take waits for the pool and gets it. A leader of Lead has it all the time. Run, RunTolerant and
// SetActive need it. Other leaders may change the active workers between Give and Take.
func (l *Leader) Take() {
	if !l.shared {
		return
	}
	p := l.p
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		panic(ErrClosed)
	}
	l.has = true
	p.workers[0].limit.Store(0) // its thread must not spin on the same PU
	p.first = l.w
}

// Give ends what Take began. Without it Give does nothing.
func (l *Leader) Give() {
	if !l.has {
		return
	}
	p, main := l.p, l.p.workers[0]
	l.has = false
	p.first = main
	if p.team.idOf[0] >= 0 {
		main.limit.Store(int64(main.spin))
	}
	p.mu.Unlock()
}
