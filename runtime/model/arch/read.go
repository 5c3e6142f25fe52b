package arch

import (
	"errors"
	"fmt"
	"slices"

	"sandwich/internal/message"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/hf"
	"sandwich/runtime/model/metadata"
)

// findHF returns the architecture of a config.json by its model_type.
func findHF(h *hf.File) (Architecture, error) {
	var known []string
	for _, a := range architectures {
		if slices.Contains(a.HF, h.Family()) {
			return a, nil
		}
		known = append(known, a.HF...)
	}
	return Architecture{}, fmt.Errorf("model_type %q (architectures %q) is %w: use %s",
		h.ModelType, h.Architecture, model.ErrUnsupported, message.Or(known))
}

// FromHF returns the configuration of a Hugging Face config.json and the tensor type of its
// checkpoint, bf16 if the file does not give it. It returns an error that names the first feature
// which this program cannot run, such as an unsupported RoPE scaling. readFile reads a file by its
// path relative to the config.json, to find the pooling of sentence-transformers models; it returns
// fs.ErrNotExist for a missing file. nil means that there are no other files.
func FromHF(data []byte, readFile func(name string) ([]byte, error)) (model.Config, gguf.Type, error) {
	h, err := hf.Parse(data)
	if err != nil {
		return model.Config{}, 0, err
	}
	arch, err := findHF(h)
	if err != nil {
		return model.Config{}, 0, err
	}
	if arch.Defaults != "" {
		if err := h.Default(arch.Defaults); err != nil {
			return model.Config{}, 0, err
		}
	}
	if err := h.Check(arch.Knows); err != nil {
		return model.Config{}, 0, err
	}
	if slices.Contains(arch.Knows, "gpt2") {
		h.UseGPT2Names()
	}
	c := model.Config{Name: h.Name, Arch: arch.Name, Eps: h.Eps, RopeBase: h.RopeTheta, Tied: h.Tied != nil && *h.Tied,
		Dims: model.Dims{Hidden: h.Hidden, Layers: h.Layers, Heads: h.Heads, KVHeads: h.KVHeads, HeadDim: h.HeadDim,
			FFN: h.FFN, Vocab: h.Vocab, Context: h.Context}}
	if c.Name == "" {
		c.Name = h.ModelType
	}
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadDim == 0 && c.Heads > 0 {
		c.HeadDim = c.Hidden / c.Heads
	}
	if arch.ReadHF != nil {
		if err := arch.ReadHF(h, &c); err != nil {
			return model.Config{}, 0, err
		}
	}
	if err := h.ReadRope(&c, arch.Knows); err != nil {
		return model.Config{}, 0, err
	}
	if err := h.ReadPooling(&c, readFile); err != nil {
		return model.Config{}, 0, err
	}
	return c, h.TensorType(), Check(c)
}

// ConfigOf reads the configuration of a model from GGUF metadata. The vocabulary is the number of
// rows of the embedding; a model without an output matrix is tied. It returns the first error.
func ConfigOf(f *gguf.File) (model.Config, error) {
	c, errs := ConfigErrors(f)
	if len(errs) > 0 {
		return model.Config{}, errs[0]
	}
	return c, nil
}

// ConfigErrors is ConfigOf that returns all errors.
func ConfigErrors(f *gguf.File) (model.Config, []error) {
	if err := metadata.CheckPurpose(f); err != nil {
		return model.Config{}, []error{err}
	}
	if f.Architecture() == "" {
		return model.Config{}, []error{errors.New("the file has no general.architecture: " +
			"it is not a model, or it is damaged; convert or download it again")}
	}
	a, err := Find(f.Architecture())
	if err != nil {
		return model.Config{}, []error{err}
	}
	c, errs := metadata.ReadFile(f, a.Name, a.Read)
	if len(errs) > 0 {
		return c, errs
	}
	if err := Check(c); err != nil {
		return c, []error{err}
	}
	return c, nil
}
