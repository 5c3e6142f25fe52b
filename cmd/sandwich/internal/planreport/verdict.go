package planreport

import (
	"fmt"
	"io"

	"sandwich/cmd/sandwich/internal/footprint"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/message"
	"sandwich/plans"
	"sandwich/plans/check"
	"sandwich/profiles"
	"sandwich/runtime/mem"
)

// Verified is the result of plan verify. Its JSON form is stable.
type Verified struct {
	check.Verdict
	Kernels *BuiltKernels     `json:"kernels,omitempty"` // absent if the plan does not run on this host
	Memory  []footprint.Row   `json:"memory,omitempty"`  // with the default --ctx and --parallel of serve
	Packed  []plans.TypeBytes `json:"packed,omitempty"`  // sizes of packed weights
}

// BuiltKernels holds the time to build all kernels of a plan.
type BuiltKernels struct {
	Count   int     `json:"count"` // kernels of matrix products; attention and row-wise kernels are not counted
	Seconds float64 `json:"seconds"`
}

// PrintVerdict prints a verdict with its reasons, the differences between hosts, and the memory by
// rank.
func PrintVerdict(w io.Writer, v *Verified) error {
	fmt.Fprintln(w, v.Judgement)
	for _, r := range v.Reasons {
		fmt.Fprintf(w, "  %s\n", show.Hanging(r, 2))
	}
	if v.Rounding != "" {
		fmt.Fprintf(w, "  not exact: %s\n", v.Rounding)
	}
	for _, p := range v.Packed {
		fmt.Fprintf(w, "  %s weights: %s in the file, %s packed (%.2f)\n", p.Type, mem.FormatBytes(p.File),
			mem.FormatBytes(p.Panels), float64(p.Panels)/float64(p.File))
	}
	if k := v.Kernels; k != nil {
		fmt.Fprintf(w, "  %s built in %s\n", message.Plural(k.Count, "kernel"), profiles.FormatSeconds(k.Seconds))
	}
	if len(v.Keys) > 0 {
		var rows [][]string
		for _, k := range v.Keys {
			rows = append(rows, []string{k.Key, k.Made, k.Here, k.Direction})
		}
		fmt.Fprintln(w)
		if err := show.Table(w, []string{"differs", "the plan's host", "here", "here is"}, rows); err != nil {
			return err
		}
	}
	if len(v.Memory) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return footprint.Print(w, v.Memory)
}
