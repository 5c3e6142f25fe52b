package model

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/cli/modelref"
	"sandwich/cmd/sandwich/internal/footprint"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans/heuristic"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/mem"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/modelfile"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/tokenizer"
	"sandwich/tuner/candidates"
	"sandwich/tuner/measure/llm"
)

// inspected holds the output of `model inspect`. Its JSON form is stable.
type inspected struct {
	modelfile.Report
	Memory  *int64         `json:"memory_bytes,omitempty"` // for one request of Context tokens; absent if the model does not run
	Context int            `json:"memory_context,omitempty"`
	AtMost  []speedCeiling `json:"at_most,omitempty"`
	Assumed []string       `json:"assumed,omitempty"` // assumptions on the machine, one sentence each
}

// speedCeiling is an upper bound of the speed of a machine.
type speedCeiling struct {
	Test    string  `json:"test"` // as bench llm names it
	Rate    float64 `json:"tokens_per_second"`
	Ceiling string  `json:"ceiling"`
}

func newModelInspect() *cobra.Command {
	var source machine.Flags
	c := &cobra.Command{
		Use:   "inspect MODEL",
		Short: "Print the contents of a GGUF file and whether sandwich runs it",
		Long: "Print the contents of a GGUF file, or of a pulled model, and whether sandwich runs it. If so, print\n" +
			"the memory that it needs and an upper bound of its speed on this machine, or on the machine that the\n" +
			"flags name. Otherwise print all reasons.",
		Example: "  sandwich model inspect llama.gguf\n  sandwich model inspect llama.gguf --format json\n" +
			"  sandwich model inspect llama.gguf --profile host.yaml",
		Args: flags.ExactArgs(1, "a GGUF file or a pulled model"),
	}
	source.Add(c)
	format := flags.Format(c, "table", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		path, err := modelref.Local(c.Context(), args[0])
		if err != nil {
			return err
		}
		f, err := gguf.Look(path)
		if err != nil {
			return exit.Usage(err)
		}
		defer f.Close()
		report, err := inspect(f, &source)
		if err != nil {
			return exit.Usage(err)
		}
		if *format == "json" {
			return show.JSON(c.OutOrStdout(), report)
		}
		return printReport(c.OutOrStdout(), report)
	}
	return c
}

// inspect collects the properties of a file. It returns an error if the machine cannot be read or
// the file changed meanwhile.
func inspect(f *gguf.File, source *machine.Flags) (*inspected, error) {
	report, err := modelfile.Inspect(f, exec.MemoryOf)
	if err != nil {
		return nil, err
	}
	r := &inspected{Report: report}
	_, wrong := arch.ConfigOf(f)
	if _, has := f.String("tokenizer.ggml.model"); has || wrong == nil { // projectors and adapters have none
		if _, err := tokenizer.New(f); err != nil {
			r.Refuse(err)
		}
	}
	if r.Refused != "" {
		return r, nil
	}
	return r, r.foresee(source)
}

// foresee estimates the memory that the model needs and an upper bound of its speed.
func (r *inspected) foresee(source *machine.Flags) error {
	host, err := source.Read()
	if err != nil {
		return err
	}
	plan, err := heuristic.Default(host, *r.Shape, heuristic.Options{})
	if err != nil {
		return err
	}
	r.Context = footprint.Context(plan)
	rows, err := footprint.Serving(plan, r.Context, 1, false)
	if err != nil {
		return err
	}
	sum := footprint.Total(rows)
	r.Memory = &sum
	host, r.Assumed = candidates.Complete(host, plan.Widest(), plan.Arithmetics())
	outline, err := modelshape.Outline(*r.Shape)
	if err != nil {
		return err
	}
	for _, t := range llm.Tests([]int{512}, []int{64}, nil, 1) {
		rate, ceiling, err := llm.AtMost(host, outline, plan, t)
		if err != nil {
			return err
		}
		r.AtMost = append(r.AtMost, speedCeiling{t.Name, rate, ceiling})
	}
	return nil
}

func printReport(w io.Writer, r *inspected) error {
	packed := ""
	if r.Packed > 0 {
		packed = fmt.Sprintf(", %s packed in memory", mem.FormatBytes(r.Packed))
	}
	fmt.Fprintf(w, "%s  %s  %s in file%s, %.1f million parameters\n",
		show.Clip(r.Name, 80), show.Clip(r.Arch, 80), mem.FormatBytes(r.Bytes), packed, float64(r.Parameters)/1e6)
	if s := r.Shape; s != nil {
		fmt.Fprintf(w, "hidden %d, %d layers, %d heads (%d KV) of %d, ffn %d, vocabulary %d, context %d, tied "+
			"head %v\n",
			s.Hidden, s.Layers, s.Heads, s.KVHeads, s.HeadDim, s.FFN, s.Vocab, s.Context, s.Tied)
		bounded := ""
		if r.KVBounded > 0 {
			bounded = fmt.Sprintf(" and %s per sequence for windowed layers", mem.FormatBytes(r.KVBounded))
		}
		if r.State > 0 {
			bounded += fmt.Sprintf(" and %s per sequence for recurrent states", mem.FormatBytes(r.State))
		}
		fmt.Fprintf(w, "KV cache: %s per token%s (f16)\n", mem.FormatBytes(r.KVPerToken), bounded)
	}
	r.printVerdict(w)
	var rows [][]string
	for _, t := range r.Types {
		rows = append(rows, []string{t.Type, strconv.Itoa(t.Tensors), fmt.Sprintf("%.2f M", float64(t.Parameters)/1e6),
			mem.FormatBytes(t.Bytes), panels(t)})
	}
	fmt.Fprintln(w)
	if err := show.Table(w, []string{"type", "tensors", "parameters", "bytes", "in panels"}, rows, 1, 2, 3,
		4); err != nil {
		return err
	}
	rows = nil
	for _, e := range r.Metadata {
		rows = append(rows, []string{e.Key, show.Clip(e.Value, 80)})
	}
	fmt.Fprintln(w)
	return show.Table(w, []string{"key", "value"}, rows)
}

// printVerdict prints whether and how the model runs.
func (r *inspected) printVerdict(w io.Writer) {
	if len(r.Reasons) == 1 {
		fmt.Fprintf(w, "sandwich cannot run it: %s\n", show.Clip(r.Refused, 400))
	} else if len(r.Reasons) > 1 {
		fmt.Fprintf(w, "sandwich cannot run it for %d reasons:\n", len(r.Reasons))
		for _, reason := range r.Reasons {
			fmt.Fprintf(w, "  - %s\n", show.Clip(reason, 400))
		}
	}
	if r.Memory == nil {
		return
	}
	fmt.Fprintf(w, "needs %s for one request of %d tokens\n", mem.FormatBytes(*r.Memory), r.Context)
	for _, t := range r.AtMost {
		fmt.Fprintf(w, "at most %.4g tokens/s in %s (%s)\n", t.Rate, t.Test, t.Ceiling)
	}
	if len(r.Assumed) > 0 {
		fmt.Fprintf(w, "%d figures of the machine are assumed; `sandwich probe -o host.yaml` measures them, and "+
			"--profile host.yaml uses the result\n", len(r.Assumed))
	}
}

// panels formats the memory of the packed matrices of a type and its ratio to that in the file; it
// returns "" if there are none.
func panels(t modelfile.TypeUse) string {
	if t.Panels == 0 {
		return ""
	}
	return fmt.Sprintf("%s (%.2f)", mem.FormatBytes(t.Panels), float64(t.Panels)/float64(t.Bytes))
}
