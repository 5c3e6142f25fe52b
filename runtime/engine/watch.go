package engine

import (
	"sync"
	"time"

	"sandwich/runtime/api"
)

// watchEvery is how often the system is asked what it leaves to the engine.
const watchEvery = time.Second

// watch follows the system: a cpuset that shrinks takes PUs away from workers while they serve, and
// a lowered quota their time. The runner goes on with those that are left, under schedules for
// their number, since results do not depend on it; the watch says so once; and the plan holds again
// when they return. Methods may be called from any goroutine.
type watch struct {
	runner    *Runner
	see       func() (standing, error) // asks the system
	note      func(text string)        // Options.Note
	displaced func(err error)          // Options.Displaced
	mover     *mover                   // nil: workers stay on their PUs

	mu      sync.Mutex // guards everything below; nothing is called under it
	now     standing   // what the system left at the last look
	teams   [2]team    // under it
	refusal error      // of new requests under it
	closed  bool
	seers   sync.WaitGroup // goroutines that look at the workers or their memory
}

func newWatch(r *Runner, o *Options) watch {
	return watch{runner: r, note: o.Note, displaced: o.Displaced, mover: newMover(o, r.Pool()),
		see: func() (standing, error) { return standingOf(r.Pool()) }}
}

// follow looks until the loop has ended.
func (w *watch) follow(ended <-chan struct{}) {
	w.seers.Go(func() {
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

// look moves workers from PUs that other processes use, compares what the system leaves with the
// last time, and plans again where it changed. The next forward runs under the new teams.
func (w *watch) look() {
	now, err := w.see()
	if err != nil {
		return // asked again at the next tick
	}
	if len(now.places.Lost) == 0 {
		for _, text := range w.mover.look(time.Now(), now.places.At, now.places.Allowed) {
			if w.note != nil {
				w.note(text)
			}
		}
	}
	before := w.standing()
	if now.equal(before) {
		return
	}
	teams, planned := w.runner.teamsFor(now)
	pus := w.runner.Pool().PUs()
	refusal := now.refusal(pus)
	w.mu.Lock()
	w.now, w.teams, w.refusal = now, teams, refusal
	w.mu.Unlock()
	if text := now.note(before, pus); text != "" && w.note != nil {
		if refusal != nil {
			text += "; until then requests are refused"
		}
		w.note(text + planned)
	}
	if refusal != nil && w.displaced != nil {
		w.displaced(refusal)
	}
}

// standing is what the system left at the last look.
func (w *watch) standing() standing {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// team is who runs the next forward of each phase.
func (w *watch) team() [2]team {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.teams
}

// refused says why new requests are refused, nil where they are not.
func (w *watch) refused() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refusal
}

// placement is Runner.Placement; ErrClosed once the watch is closing.
func (w *watch) placement() ([]Placement, error) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil, api.ErrClosed
	}
	w.seers.Add(1)
	w.mu.Unlock()
	defer w.seers.Done()
	return w.runner.Placement()
}

// close returns when nobody looks any more; the loop that follow was given has ended.
func (w *watch) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.seers.Wait()
}
