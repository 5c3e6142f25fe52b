package engine

import (
	"sync"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/engine/cpus"
	"sandwich/runtime/engine/forward"
)

// watch checks the available CPUs at intervals. When the cpuset or the quota shrinks while serving,
// it makes the runner continue with the remaining workers, under schedules for their number if
// possible; results do not depend on that. It reports each change once, and returns to the plan
// when the CPUs are available again. Its methods may be called concurrently.
type watch struct {
	runner    *forward.Runner
	read      func() (cpus.State, error) // asks the system
	note      func(text string)          // Options.Note
	displaced func(err error)            // Options.Displaced
	mover     *cpus.Mover                // nil: workers stay on their PUs

	mu      sync.Mutex      // guards the fields up to the next blank line; not held during calls
	now     cpus.State      // state at the last check
	teams   [2]forward.Team // for that state
	refusal error           // of new requests in that state
	closed  bool

	watchers sync.WaitGroup // goroutines that use the workers or their memory
}

// watchEvery is the interval between two checks of the available CPUs.
const watchEvery = time.Second

// follow starts a goroutine that checks at intervals until the loop has ended.
func (w *watch) follow(ended <-chan struct{}) {
	w.watchers.Go(func() {
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				w.look()
			}
		}
	})
}

// look moves workers from PUs that other processes use, compares the available CPUs with those of
// the last check, and replans if they changed. The next forward uses the new teams.
func (w *watch) look() {
	now, err := w.read()
	if err != nil {
		return // try again at the next tick
	}
	if len(now.Places.Lost) == 0 && w.runner.Moves() {
		for _, text := range w.mover.Look(time.Now(), now.Places.At, now.Places.Allowed) {
			if w.note != nil {
				w.note(text)
			}
		}
	}
	before := w.available()
	if now.Equal(before) {
		w.mu.Lock()
		w.now.Places.At = now.Places.At // of moved workers
		w.mu.Unlock()
		return
	}
	teams, planned := w.runner.TeamsFor(now)
	pus := w.runner.Pool().PUs()
	refusal := now.Refusal(pus)
	w.mu.Lock()
	w.now, w.teams, w.refusal = now, teams, refusal
	w.mu.Unlock()
	if text := now.Note(before, pus); text != "" && w.note != nil {
		if refusal != nil {
			text += "; until then requests are refused"
		}
		w.note(text + planned)
	}
	if refusal != nil && w.displaced != nil {
		w.displaced(refusal)
	}
}

// available returns the available CPUs of the last check.
func (w *watch) available() cpus.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// team returns the workers and schedules for the next forward of each phase.
func (w *watch) team() [2]forward.Team {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.teams
}

// refused returns the error with which new requests are refused, nil if they are accepted.
func (w *watch) refused() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refusal
}

// placement returns Runner.Placement, or api.ErrClosed after close was called.
func (w *watch) placement() ([]forward.Placement, error) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil, api.ErrClosed
	}
	w.watchers.Add(1)
	w.mu.Unlock()
	defer w.watchers.Done()
	return w.runner.Placement()
}

// close waits until no goroutine uses the runner any more. The loop must have ended.
func (w *watch) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.watchers.Wait()
}
