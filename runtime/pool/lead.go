package pool

import "time"

// Lead runs fn on the thread of worker 0 and returns when it returns. From there Leader.Run reaches
// the other workers without waking or displacing a thread; an engine's loop runs there. fn may
// block like any goroutine. Other calls of Run, Lead and the setters wait meanwhile. A panic of fn
// comes back as a panic with a *Panic.
func (p *Pool) Lead(fn func(l *Leader)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mustBeOpen()
	l, w := &p.leader, p.workers[0]
	l.fn, l.failed = fn, nil
	p.adopt(p.team)
	l.done.Add(1)
	w.ring(cmdLead)
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
	p, w := l.p, l.p.workers[0]
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
