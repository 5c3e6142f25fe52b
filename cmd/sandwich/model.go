package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
)

func newModel() *cobra.Command {
	c := &cobra.Command{
		Use:   "model",
		Short: "Look into a GGUF file, or make one with random weights",
		Example: `  sandwich model inspect llama.gguf
  sandwich model synth --preset llama-160m --type q8_0 -o llama-160m.gguf`,
		Args: knownVerb,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newModelInspect(), newModelSynth())
	return c
}

func newModelInspect() *cobra.Command {
	c := &cobra.Command{
		Use:     "inspect MODEL.gguf",
		Short:   "Print what a GGUF file holds and whether sandwich runs it",
		Example: "  sandwich model inspect llama.gguf\n  sandwich model inspect llama.gguf --format json",
		Args:    exactArgs(1, "a GGUF file"),
	}
	format := formatFlag(c, "table", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		f, err := gguf.Open(args[0])
		if err != nil {
			return usageError(err)
		}
		defer f.Close()
		report, err := model.Inspect(f, exec.MemoryOf)
		if err != nil {
			return usageError(err)
		}
		if *format == "json" {
			return show.JSON(c.OutOrStdout(), report)
		}
		return printReport(c.OutOrStdout(), report)
	}
	return c
}

func printReport(w io.Writer, r model.Report) error {
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
			bounded = fmt.Sprintf(" and %s a sequence for layers that forget", mem.FormatBytes(r.KVBounded))
		}
		if r.State > 0 {
			bounded += fmt.Sprintf(" and %s a sequence for the states of its layers", mem.FormatBytes(r.State))
		}
		fmt.Fprintf(w, "KV cache: %s a token%s (f16)\n", mem.FormatBytes(r.KVPerToken), bounded)
	}
	if r.Refused != "" {
		fmt.Fprintf(w, "sandwich cannot run it: %s\n", show.Clip(r.Refused, 400))
	}
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

// panels is what the matrices of a type take as kernels read them; nothing where there are none.
func panels(t model.TypeUse) string {
	if t.Panels == 0 {
		return ""
	}
	return fmt.Sprintf("%s (%.2f)", mem.FormatBytes(t.Panels), float64(t.Panels)/float64(t.Bytes))
}

func newModelSynth() *cobra.Command {
	var preset, typ, out string
	var seed uint64
	c := &cobra.Command{
		Use:   "synth --preset NAME -o MODEL.gguf",
		Short: "Write a valid GGUF file of random weights, to tune and benchmark without a download",
		Long: "Write a valid GGUF file of random weights, the same bytes for the same preset, type and " +
			"seed.\n\nPresets: " +
			strings.Join(model.PresetNames(), ", "),
		Example: "  sandwich model synth --preset tinyllama-1.1b --type q8_0 -o tiny-q8.gguf\n  sandwich model " +
			"synth --preset tinyllama-1.1b --type q4_K_M -o tiny-q4km.gguf",
		Args: exactArgs(0, ""),
	}
	c.Flags().StringVar(&preset, "preset", "", "model shape: "+strings.Join(model.PresetNames(), ", "))
	c.Flags().StringVar(&typ, "type", "q8_0", "tensor type of the matrices, or a mix as llama-quantize makes "+
		"it: q4_K_M, q5_K_M")
	c.Flags().Uint64Var(&seed, "seed", 1, "seed of the random weights")
	c.Flags().StringVarP(&out, "output", "o", "", "file to write")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if preset == "" || out == "" {
			return usageError(fmt.Errorf("give --preset and -o; presets are %s",
				strings.Join(model.PresetNames(), ", ")))
		}
		config, err := model.Preset(preset)
		if err != nil {
			return usageError(err)
		}
		t, err := model.ParseFileType(typ)
		if err != nil {
			return usageError(err)
		}
		update, done := show.ByteBar("writing " + out)
		defer done()
		return model.Synth(c.Context(), out, config, t, seed, update)
	}
	return c
}
