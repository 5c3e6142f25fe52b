package session

import (
	"sandwich/plans"
	"sandwich/runtime/engine"
)

// fallenMemory is memory of one plan that its node had no room for.
type fallenMemory struct {
	plan *plans.Plan
	rank int
	what string
}

// NoticeFallen says which memory is not on the node that the plan binds it to.
func (s *Session) NoticeFallen(r *engine.Runner) {
	places, err := r.Placement()
	if err != nil {
		s.Notice("note: where the memory lies could not be looked up: " + err.Error())
		return
	}
	for _, note := range s.newlyFallen(places) {
		s.Notice("warning: " + note)
	}
}

// newlyFallen is engine.Fallen without what was told before: a session may load its model several
// times.
func (s *Session) newlyFallen(places []engine.Placement) []string {
	if s.fallen == nil {
		s.fallen = map[fallenMemory]bool{}
	}
	var fresh []engine.Placement
	for _, p := range places {
		if f := (fallenMemory{s.Plan, p.Rank, p.What}); p.Fell && !s.fallen[f] {
			s.fallen[f] = true
			fresh = append(fresh, p)
		}
	}
	return engine.Fallen(fresh)
}
