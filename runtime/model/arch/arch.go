// Package arch has the architectures of models, one family in a file. A file registers how to read
// the configuration of the family from GGUF metadata and from a Hugging Face config.json, and how
// to write its forward as ops.
package arch

import (
	"fmt"
	"maps"
	"slices"

	"sandwich/internal/message"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/hf"
	"sandwich/runtime/model/metadata"
)

// Architecture describes one family of models: how to read its configuration, and its forward as
// ops with the names and shapes of their tensors. A family is one file that registers its
// architectures. Loading, synthesis, inspection and cost estimates follow from them.
type Architecture struct {
	Name string   // general.architecture in GGUF
	HF   []string // model_type in Hugging Face's config.json, or the result of hf.File.Family

	// Read and ReadHF read metadata that only this family has, after the sizes that all families
	// have. Either may be nil.
	Read   func(*metadata.Reader, *model.Config)
	ReadHF func(*hf.File, *model.Config) error
	// Defaults has the values of config.json that published files leave out, as a JSON object:
	// those of the configuration class in transformers 5. "" means none.
	Defaults string
	// Knows lists features of a config.json that ReadHF handles and that are refused for other
	// families: windows, gelu, acts (all activations), biases, yarn, linear, longrope. gpt2 means
	// that sizes may have the names of GPT-2.
	Knows []string
	// Check returns an error for configurations that the family cannot have. nil means a dense
	// family without experts.
	Check func(model.Config) error

	// Decoder writes the ops of a forward, from the embedding to the head.
	Decoder func(*model.Builder)

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

// Find returns the architecture with a GGUF name.
func Find(name string) (Architecture, error) {
	a, ok := architectures[name]
	if !ok {
		known := slices.Collect(maps.Keys(architectures))
		return a, fmt.Errorf("architecture %q is %w: use a %s model", name, model.ErrUnsupported, message.Or(known))
	}
	return a, nil
}

// Model returns the ops of the configuration with the names and shapes of their tensors, without
// values.
func Model(c model.Config) (*model.Model, error) {
	arch, err := Find(c.Arch)
	if err != nil {
		return nil, err
	}
	return c.Build(arch.Decoder), nil
}

// ModelOf returns the model of a file's metadata, without values: ConfigOf, then Model.
func ModelOf(f *gguf.File) (*model.Model, error) {
	c, err := ConfigOf(f)
	if err != nil {
		return nil, err
	}
	return Model(c)
}

// checkDense returns an error for a configuration with experts.
func checkDense(c model.Config) error {
	if c.Experts != (model.Experts{}) {
		return fmt.Errorf("%d experts are given for architecture %s, which has none", c.Experts.Count, c.Arch)
	}
	return nil
}

// Check returns an error that names the first size of a configuration which is not possible,
// or which its family cannot have.
func Check(c model.Config) error {
	a, err := Find(c.Arch)
	if err != nil {
		return err
	}
	if err := c.CheckSizes(); err != nil {
		return err
	}
	return a.Check(c)
}

// checkExperts is the Check function of a family whose models have experts.
func checkExperts(c model.Config) error { return c.Experts.Check() }

// checkMaybe is the Check function of a family whose models may have experts.
func checkMaybe(c model.Config) error {
	if c.Experts == (model.Experts{}) {
		return nil
	}
	return c.Experts.Check()
}

// checkWindows is the Check function of a dense family whose layers have windows.
func checkWindows(c model.Config) error {
	if err := c.Windows.Check(c.Arch); err != nil {
		return err
	}
	return checkDense(c)
}

// checkMaybeWindows is the Check function of a dense family whose layers may have windows.
func checkMaybeWindows(c model.Config) error {
	if c.Windows.Size > 0 {
		return checkWindows(c)
	}
	return checkDense(c)
}
