package serve

import (
	"fmt"
	"io"

	"sandwich/runtime/engine/forward"
	"sandwich/runtime/mem"
)

// printPlacement prints for each rank the nodes that hold its memory.
func printPlacement(w io.Writer, places []forward.Placement) {
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

// hugeText formats the share of the loaded memory on huge pages; "" if it is unknown.
func hugeText(r *forward.Runner, m forward.Memory) string {
	n, err := r.Huge()
	if all := m.Weights + m.KV + m.Activations; err == nil && n >= 0 && all > 0 {
		return fmt.Sprintf("%.0f %% on huge pages", 100*min(1, float64(n)/float64(all)))
	}
	return ""
}
