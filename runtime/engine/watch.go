package engine

import "time"

// watchEvery is how often the engine asks what the system leaves to it.
const watchEvery = time.Second

// watch follows the system: a cpuset that shrinks takes PUs away from workers while they serve, and a lowered quota their time. The engine goes on
// with those that are left, under schedules for their number, since results do not depend on it; says so once; and goes back to its plan when they return.
func (e *Engine) watch() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-e.ended:
			return
		case <-tick.C:
			e.look()
		}
	}
}

// look compares what the system leaves with the last time, and plans again where it changed. The next forward runs under the new teams.
func (e *Engine) look() {
	now, err := e.see()
	if err != nil {
		return // asked again at the next tick
	}
	e.mu.Lock()
	before := e.standing
	e.mu.Unlock()
	if now.equal(before) {
		return
	}
	teams, planned := e.runner.teamsFor(now)
	pus := e.runner.pool.PUs()
	refusal := now.refusal(pus)
	e.mu.Lock()
	e.standing, e.teams, e.refusal = now, teams, refusal
	e.mu.Unlock()
	if text := now.note(before, pus); text != "" && e.note != nil {
		if refusal != nil {
			text += "; until then requests are refused"
		}
		e.note(text + planned)
	}
	if refusal != nil && e.displaced != nil {
		e.displaced(refusal)
	}
}

// Ready says why new requests are refused, nil where they are not.
func (e *Engine) Ready() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed != nil {
		return e.failed
	}
	return e.refusal
}
