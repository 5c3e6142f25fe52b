// Package model has the verb model, which lists, inspects and writes models.
package model

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelref"
	"sandwich/runtime/gguf"
	"sandwich/runtime/jinja"
	"sandwich/runtime/model"
	"sandwich/runtime/model/synth"
)

// NewModel returns the verb model.
func NewModel() *cobra.Command {
	c := &cobra.Command{
		Use:   "model",
		Short: "List and remove pulled models, inspect a GGUF file, or write one with random weights",
		Example: `  sandwich model ls
  sandwich model rm qwen3-0.6b-Q8_0
  sandwich model inspect llama.gguf
  sandwich model synth --preset llama-160m --type q8_0 -o llama-160m.gguf`,
		Args: flags.KnownVerb,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newModelInspect(), newModelList(), newModelRemove(), newModelShow(), newModelSynth())
	return c
}

func newModelSynth() *cobra.Command {
	var preset, typ, out, template, vocabulary string
	var seed uint64
	var layers, experts int
	var tail tailFlags
	c := &cobra.Command{
		Use:   "synth --preset NAME -o MODEL.gguf",
		Short: "Write a GGUF file with random weights, for tuning and benchmarks",
		Long: "Write a valid GGUF file with random weights. Equal presets, types and seeds give equal " +
			"bytes.\n\nPresets: " +
			strings.Join(synth.PresetNames(), ", ") + ".\nEach family also has a small preset FAMILY-tiny: " +
			strings.Join(synth.Families(), ", "),
		Example: "  sandwich model synth --preset tinyllama-1.1b --type q8_0 -o tiny-q8.gguf\n  sandwich model " +
			"synth --preset tinyllama-1.1b --type q4_K_M -o tiny-q4km.gguf\n  sandwich model synth --preset " +
			"gpt-oss-20b --type mxfp4_moe --layers 4 --experts 8 -o oss.gguf",
		Args: flags.ExactArgs(0, ""),
	}
	c.Flags().StringVar(&preset, "preset", "", "model shape: "+strings.Join(synth.PresetNames(), ", "))
	c.Flags().StringVar(&typ, "type", "q8_0", "tensor type of the matrices, or a mix as of llama-quantize: "+
		"q4_K_M, q5_K_M, mxfp4_moe")
	c.Flags().IntVar(&layers, "layers", 0, "number of leading layers to keep (default: all)")
	c.Flags().IntVar(&experts, "experts", 0, "number of experts per layer to keep (default: all)")
	c.Flags().Uint64Var(&seed, "seed", 1, "seed of the random weights")
	c.Flags().StringVar(&template, "template", "", "file with the chat template, in Jinja (default: one typical "+
		"of the family)")
	flags.Renamed(c.Flags(), "chat-template", "template")
	c.Flags().StringVar(&vocabulary, "tokenizer-of", "", "GGUF file or pulled model whose tokenizer to copy "+
		"(default: a synthetic one of the family's kind)")
	c.Flags().StringVarP(&out, "output", "o", "", "file to write")
	tail.add(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		if preset == "" || out == "" {
			return exit.Usage(fmt.Errorf("--preset or -o is missing; give both; presets are %s",
				strings.Join(synth.PresetNames(), ", ")))
		}
		config, err := synth.Preset(preset)
		if err != nil {
			return exit.Usage(err)
		}
		if config, err = synth.Cut(config, layers, experts); err != nil {
			return exit.Usage(fmt.Errorf("--layers and --experts: %w", err))
		}
		t, err := synth.ParseFileType(typ)
		if err != nil {
			return exit.Usage(err)
		}
		if config.Template, err = templateOf(template); err != nil {
			return exit.Usage(err)
		}
		if vocabulary != "" {
			if config, err = borrow(c.Context(), config, vocabulary); err != nil {
				return exit.Usage(fmt.Errorf("--tokenizer-of %s: %w", vocabulary, err))
			}
		}
		if tail.scale == 0 {
			return write(c.Context(), out, config, t, seed, synth.Tail{From: config.Layers})
		}
		first, err := tail.check(config.Layers)
		if err != nil {
			return exit.Usage(err)
		}
		draft, err := synth.Cut(config, first, 0)
		if err != nil {
			return exit.Usage(fmt.Errorf("--head-layers: %w", err))
		}
		if err := write(c.Context(), draftFile(out), draft, t, seed, synth.Tail{From: first}); err != nil {
			return err
		}
		return write(c.Context(), out, config, t, seed, synth.Tail{From: first, Scale: tail.scale})
	}
	return c
}

// templateOf reads a chat template; it returns "" if file is empty.
func templateOf(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("--template: %w", err)
	}
	if _, err := jinja.Parse(string(text)); err != nil {
		return "", fmt.Errorf("--template %s: %w", file, err)
	}
	return string(text), nil
}

// borrow returns the configuration with the tokenizer of a GGUF file.
func borrow(ctx context.Context, config model.Config, file string) (model.Config, error) {
	path, err := modelref.Local(ctx, file)
	if err != nil {
		return config, err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return config, err
	}
	defer f.Close()
	return synth.BorrowVocabulary(config, f)
}
