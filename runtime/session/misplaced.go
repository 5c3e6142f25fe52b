package session

import (
	"sandwich/plans"
	"sandwich/runtime/engine/forward"
)

// misplacedMemory identifies memory of a plan that is not on the requested NUMA node.
type misplacedMemory struct {
	plan *plans.Plan
	rank int
	what string
}

// NoticeMisplaced calls Notice with a warning for workers that are not pinned, and for each memory
// that is not on the NUMA node that the plan binds it to. It reports each once per session.
func (s *Session) NoticeMisplaced(r *forward.Runner) {
	if note := r.Pool().Note(); note != "" && note != s.unpinned {
		s.unpinned = note
		s.Notice("warning: " + note)
	}
	places, err := r.Placement()
	if err != nil {
		s.Notice("note: the placement of memory on NUMA nodes could not be read: " + err.Error())
		return
	}
	for _, note := range s.newlyMisplaced(places) {
		s.Notice("warning: " + note)
	}
}

// newlyMisplaced returns engine.MisplacedNotes of the memory that was not reported before. A
// session may load its model several times.
func (s *Session) newlyMisplaced(places []forward.Placement) []string {
	if s.misplaced == nil {
		s.misplaced = map[misplacedMemory]bool{}
	}
	var fresh []forward.Placement
	for _, p := range places {
		if f := (misplacedMemory{s.Plan, p.Rank, p.What}); p.Misplaced && !s.misplaced[f] {
			s.misplaced[f] = true
			fresh = append(fresh, p)
		}
	}
	return forward.MisplacedNotes(fresh)
}
