package model

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sandwich/runtime/gguf"
)

// ErrUnsupported is wrapped by every refusal of a model that is valid but that this program cannot
// run.
var ErrUnsupported = errors.New("not supported")

// Architecture is one family of models: how its configuration is read, and its decoder as ops with
// the names and shapes of their tensors. Each is one file, arch_NAME.go, and registers itself;
// loading, synthesis, inspection, shapes, cuts and work follow from what it writes out.
type Architecture struct {
	Name string   // general.architecture in GGUF
	HF   []string // model_type in Hugging Face's config.json, or what HF.family makes of it

	// Read and ReadHF take what the family's metadata say beyond the sizes that all have; nil for
	// nothing.
	Read   func(*Metadata, *Config)
	ReadHF func(*HF, *Config) error
	// Knows lists what ReadHF reads itself, of those things that are refused otherwise: windows,
	// gelu, acts (all activations), biases, yarn, linear, longrope; and gpt2, whose names of sizes
	// a family may have.
	Knows []string
	// Check refuses configurations that the family cannot have; nil for a dense family, which has
	// no experts.
	Check func(Config) error

	// Decoder writes a forward out, from the embedding to the head.
	Decoder func(*Builder)

	// Vocabulary invents a tokenizer of so many tokens for synthetic models; nil for llama's.
	Vocabulary func(w *gguf.Writer, tokens int)
}

var architectures = map[string]Architecture{}

// Register makes an architecture known by its name. To be called before any model is read.
func Register(a Architecture) {
	if _, twice := architectures[a.Name]; twice {
		panic("model: architecture " + a.Name + " is registered twice")
	}
	if a.Check == nil {
		a.Check = checkDense
	}
	if a.Vocabulary == nil {
		a.Vocabulary = llamaVocabulary
	}
	architectures[a.Name] = a
}

func checkDense(c Config) error {
	if c.Experts != (Experts{}) {
		return fmt.Errorf("architecture %s has no experts, yet %d are given", c.Arch, c.Experts.Count)
	}
	return nil
}

// archOf finds an architecture by the name that GGUF gives it.
func archOf(name string) (Architecture, error) {
	a, ok := architectures[name]
	if !ok {
		known := slices.Collect(maps.Keys(architectures))
		return a, fmt.Errorf("architecture %q is %w: use a %s model", name, ErrUnsupported, anyOf(known))
	}
	return a, nil
}

// archOfHF finds an architecture by its model_type.
func archOfHF(h *HF) (Architecture, error) {
	var known []string
	for _, a := range architectures {
		if slices.Contains(a.HF, h.family()) {
			return a, nil
		}
		known = append(known, a.HF...)
	}
	return Architecture{}, fmt.Errorf("model_type %q (architectures %q) is %w: use %s",
		h.ModelType, h.Architecture, ErrUnsupported, anyOf(known))
}

// anyOf is "a, b or c".
func anyOf(names []string) string {
	slices.Sort(names)
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
