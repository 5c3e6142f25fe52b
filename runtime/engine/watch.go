package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sandwich/runtime/pool"
)

// watchEvery is how often the engine asks where its threads may run.
const watchEvery = time.Second

// watch follows the system: a cpuset that shrinks takes PUs away from workers while they serve. The engine goes on with
// those that are left, since results do not depend on their number, says so once, and takes PUs back when they return.
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

// look compares the places of the threads with those of the last time.
func (e *Engine) look() {
	now, err := e.runner.pool.Places()
	if err != nil {
		return // asked again at the next tick
	}
	e.mu.Lock()
	changed := !slices.Equal(now.Lost, e.places.Lost)
	e.places = now
	e.mu.Unlock()
	if changed && e.note != nil {
		e.note(placeNote(now, e.runner.pool.PUs()))
	}
}

// placeNote says in one sentence what changed.
func placeNote(now pool.Places, pus []int) string {
	if len(now.Lost) == 0 {
		return "every PU of the plan may be used again"
	}
	var lost []string
	for _, w := range now.Lost {
		lost = append(lost, fmt.Sprint(pus[w]))
	}
	return fmt.Sprintf("the system took PU %s of the plan away, this process may use %v: requests go on with what is left; widen the cpuset, or make a plan for it with sandwich tune",
		strings.Join(lost, ", "), now.Allowed)
}

// workersLeft chooses the workers of a phase that are worth running: those on their own PUs, and of the others, which now
// share what is left, as many as there are PUs for them. At least one remains.
func workersLeft(workers []int, now pool.Places) []int {
	if len(now.Lost) == 0 {
		return workers
	}
	var left []int
	for _, w := range workers {
		if !slices.Contains(now.Lost, w) {
			left = append(left, w)
		}
	}
	room := max(1, len(now.Allowed))
	for _, w := range workers {
		if len(left) < room && slices.Contains(now.Lost, w) {
			left = append(left, w)
		}
	}
	slices.Sort(left)
	return left
}
