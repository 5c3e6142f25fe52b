package model

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sandwich/runtime/gguf"
)

// ErrUnsupported is wrapped by all errors about a model that is valid but that this program cannot
// run.
var ErrUnsupported = errors.New("not supported")

// Architecture describes one family of models: how to read its configuration, and its forward as
// ops with the names and shapes of their tensors. Each is one file, arch_NAME.go, that registers
// itself. Loading, synthesis, inspection and cost estimates follow from it.
type Architecture struct {
	Name string   // general.architecture in GGUF
	HF   []string // model_type in Hugging Face's config.json, or the result of HF.family

	// Read and ReadHF read metadata that only this family has, after the sizes that all families
	// have. Either may be nil.
	Read   func(*Metadata, *Config)
	ReadHF func(*HF, *Config) error
	// Knows lists features of a config.json that ReadHF handles and that are refused for other
	// families: windows, gelu, acts (all activations), biases, yarn, linear, longrope. gpt2 means
	// that sizes may have the names of GPT-2.
	Knows []string
	// Check returns an error for configurations that the family cannot have. nil means a dense
	// family without experts.
	Check func(Config) error

	// Decoder writes the ops of a forward, from the embedding to the head.
	Decoder func(*Builder)

	// Vocabulary writes a synthetic tokenizer with the given number of tokens; nil means llama's.
	Vocabulary func(w *gguf.Writer, tokens int)
}

var architectures = map[string]Architecture{}

// Register adds an architecture. It panics if the name is taken, and must be called from an init
// function.
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

// checkDense returns an error for a configuration with experts.
func checkDense(c Config) error {
	if c.Experts != (Experts{}) {
		return fmt.Errorf("%d experts are given for architecture %s, which has none", c.Experts.Count, c.Arch)
	}
	return nil
}

// archOf returns the architecture with a GGUF name.
func archOf(name string) (Architecture, error) {
	a, ok := architectures[name]
	if !ok {
		known := slices.Collect(maps.Keys(architectures))
		return a, fmt.Errorf("architecture %q is %w: use a %s model", name, ErrUnsupported, anyOf(known))
	}
	return a, nil
}

// archOfHF returns the architecture of a config.json by its model_type.
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

// anyOf returns the sorted names as "a, b or c".
func anyOf(names []string) string {
	slices.Sort(names)
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
