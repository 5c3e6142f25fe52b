package pool

import "sandwich/runtime/pool/internal/sys"

func (w *Worker) start(ready chan<- error) { sys.OwnThread(func() { w.loop(ready) }) }

// loop is the goroutine of the worker, locked to its thread. It does not unlock the thread, so that
// the system thread with its changed affinity ends too.
func (w *Worker) loop(ready chan<- error) {
	w.thread.Store(int64(sys.ThreadID()))
	if w.pool.pinned {
		ready <- sys.Pin(0, w.PU()) // a worker that failed waits for cmdExit like the others
	} else {
		ready <- nil
	}
	w.serve(0)
}

// serve executes commands until told to exit. at is the value of the event of the last command.
func (w *Worker) serve(at uint32) {
	w.openAccounts()
	ended := false
	defer func() {
		w.closeAccounts()
		if !ended { // the function of a run called runtime.Goexit; another goroutine replaces this one
			go w.replace(at)
		}
	}()
	for {
		w.wait(&w.commands, at)
		at = w.commands.Load()
		switch command(w.cmd.Swap(int32(cmdNone))) { // none: taken with an earlier command
		case cmdExit:
			ended = true
			w.pool.exited.Done()
			return
		case cmdRun:
			w.enter()
			w.execute(w.pool.fn)
		case cmdJoin:
			w.takePart()
		case cmdLead:
			w.lead()
		}
	}
}

// openAccounts opens the accounts of lost CPU time of the calling thread, which is the worker's.
func (w *Worker) openAccounts() {
	w.nivcsw = sys.InvoluntarySwitches()
	w.delay.Open()
	w.waitedCPU, _ = w.delay.Read()
	if w.pool.pinned {
		w.steal.Open(sys.ProcStat, w.PU())
	}
}

func (w *Worker) closeAccounts() {
	w.delay.Close()
	w.steal.Close()
}

// replace takes over from a worker whose goroutine ended.
func (w *Worker) replace(at uint32) {
	sys.OwnThread(func() {
		w.thread.Store(int64(sys.ThreadID()))
		if w.pool.pinned {
			// It succeeded for this PU before. If the cpuset shrank since, the worker runs wherever
			// the system lets it.
			_ = sys.Pin(0, w.PU())
		}
		w.serve(at)
	})
}
