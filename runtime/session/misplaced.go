package session

import (
	"sandwich/plans"
	"sandwich/runtime/engine"
)

// misplacedMemory is memory of one plan that its node had no room for.
type misplacedMemory struct {
	plan *plans.Plan
	rank int
	what string
}

// NoticeMisplaced says which memory is not on the node that the plan binds it to.
func (s *Session) NoticeMisplaced(r *engine.Runner) {
	places, err := r.Placement()
	if err != nil {
		s.Notice("note: where the memory lies could not be looked up: " + err.Error())
		return
	}
	for _, note := range s.newlyMisplaced(places) {
		s.Notice("warning: " + note)
	}
}

// newlyMisplaced is engine.MisplacedNotes without what was told before: a session may load its
// model several times.
func (s *Session) newlyMisplaced(places []engine.Placement) []string {
	if s.misplaced == nil {
		s.misplaced = map[misplacedMemory]bool{}
	}
	var fresh []engine.Placement
	for _, p := range places {
		if f := (misplacedMemory{s.Plan, p.Rank, p.What}); p.Misplaced && !s.misplaced[f] {
			s.misplaced[f] = true
			fresh = append(fresh, p)
		}
	}
	return engine.MisplacedNotes(fresh)
}
