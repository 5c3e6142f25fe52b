package main

import (
	"fmt"
	"io"
	"strings"

	"sandwich/plans"
	"sandwich/runtime/engine"
	"sandwich/runtime/mem"
)

// fallenMemory is memory of one plan that its node had no room for.
type fallenMemory struct {
	plan *plans.Plan
	rank int
	what string
}

// noticeFallen says on stderr which memory is not on the node that the plan binds it to.
func (s *session) noticeFallen(r *engine.Runner) {
	places, err := r.Placement()
	if err != nil {
		notice("note: where the memory lies could not be looked up: " + err.Error())
		return
	}
	for _, note := range s.newlyFallen(places) {
		notice("warning: " + note)
	}
}

// newlyFallen is engine.Fallen without what was told before: a session may load its model several
// times.
func (s *session) newlyFallen(places []engine.Placement) []string {
	if s.fallen == nil {
		s.fallen = map[fallenMemory]bool{}
	}
	var fresh []engine.Placement
	for _, p := range places {
		if f := (fallenMemory{s.plan, p.Rank, p.What}); p.Fell && !s.fallen[f] {
			s.fallen[f] = true
			fresh = append(fresh, p)
		}
	}
	return engine.Fallen(fresh)
}

// printPlacement tells, a line for each rank, on which nodes its memory lies.
func printPlacement(w io.Writer, places []engine.Placement) {
	for i, p := range places {
		if p.On == nil {
			continue
		}
		if i == 0 || places[i-1].Rank != p.Rank {
			fmt.Fprintf(w, "rank %d", p.Rank)
			if p.Node != mem.AnyNode {
				fmt.Fprintf(w, " on node %d", p.Node)
			}
			fmt.Fprint(w, ": ")
		}
		fmt.Fprintf(w, "%s %s", p.What, mem.FormatNodes(p.On, p.Remote))
		if i+1 < len(places) && places[i+1].Rank == p.Rank {
			fmt.Fprint(w, "; ")
		} else {
			fmt.Fprintln(w)
		}
	}
}

// hugeText says how much of what was loaded lies on huge pages; empty where that cannot be told.
func hugeText(r *engine.Runner, m engine.Memory) string {
	n, err := r.Huge()
	if all := m.Weights + m.KV + m.Activations; err == nil && n >= 0 && all > 0 {
		return fmt.Sprintf("%.0f %% on huge pages", 100*min(1, float64(n)/float64(all)))
	}
	return ""
}

// joinNonEmpty joins what is not empty.
func joinNonEmpty(sep string, parts ...string) string {
	var list []string
	for _, p := range parts {
		if p != "" {
			list = append(list, p)
		}
	}
	return strings.Join(list, sep)
}
