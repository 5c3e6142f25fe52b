package plans

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"sandwich/internal/message"
	"sandwich/microkernel"
	"sandwich/profiles"
)

// ModelShape holds what tuning needs to know about a model: dimensions and the shapes of its
// weights, but no values of weights.
type ModelShape struct {
	Arch        string `yaml:"arch" json:"arch"` // llama, qwen2, qwen3, qwen3moe
	Name        string `yaml:"name" json:"name"` // for messages; not part of the digest
	Hidden      int    `yaml:"hidden" json:"hidden"`
	Layers      int    `yaml:"layers" json:"layers"`
	Heads       int    `yaml:"heads" json:"heads"`
	KVHeads     int    `yaml:"kv_heads" json:"kv_heads"`
	HeadDim     int    `yaml:"head_dim" json:"head_dim"`
	FFN         int    `yaml:"ffn" json:"ffn"`
	Vocab       int    `yaml:"vocab" json:"vocab"`
	Context     int    `yaml:"context" json:"context"` // context length of the training
	Tied        bool   `yaml:"tied" json:"tied"`       // the output head is the embedding
	Experts     int    `yaml:"experts,omitempty" json:"experts,omitempty"`
	ExpertsUsed int    `yaml:"experts_used,omitempty" json:"experts_used,omitempty"`
	ExpertFFN   int    `yaml:"expert_ffn,omitempty" json:"expert_ffn,omitempty"`
	// Values holds further parameters of the model's operations by GGUF key. They are not part of
	// the digest.
	Values  map[string][]float64 `yaml:"values,omitempty" json:"values,omitempty"`
	Weights []WeightShape        `yaml:"weights" json:"weights"`
}

// WeightShape describes the matrices of one role, shape and type: N rows (outputs) of K values,
// row-major as in GGUF.
type WeightShape struct {
	Role  string `json:"role"` // q k v o gate up down head embed router
	N     int    `json:"n"`
	K     int    `json:"k"`
	Type  string `json:"type"`  // GGUF type name in lower case: f32 f16 bf16 q8_0 q4_0 ...
	Count int    `json:"count"` // number of such matrices in the model
}

// weightShapeDoc is the one-line form in plan.yaml.
type weightShapeDoc struct {
	Role  string  `yaml:"role"`
	Shape KeyText `yaml:"shape"`
	Count int     `yaml:"count"`
}

// MarshalYAML writes a weight shape on one line.
func (w WeightShape) MarshalYAML() (any, error) {
	return profiles.FlowYAML(weightShapeDoc{w.Role, KeyText(w.Key()), w.Count})
}

// UnmarshalYAML reads what MarshalYAML writes.
func (w *WeightShape) UnmarshalYAML(unmarshal func(any) error) error {
	var d weightShapeDoc
	if err := unmarshal(&d); err != nil {
		return err
	}
	*w = WeightShape{Role: d.Role, N: d.Shape.N, K: d.Shape.K, Type: d.Shape.Type, Count: d.Count}
	return nil
}

// Pooled reports whether the model returns a vector or scores of a text and does not generate: it
// has no output head. The decode phase of its plans is then unused.
func (s ModelShape) Pooled() bool {
	return len(s.Weights) > 0 && !slices.ContainsFunc(s.Weights, func(w WeightShape) bool { return w.Role == "head" })
}

// Key returns the key that identifies the weight in a plan.
func (w WeightShape) Key() WeightKey { return WeightKey{w.N, w.K, w.Type} }

// RoleEmbed is the role of the token embedding, whose rows are looked up and not multiplied. A tied
// head is listed in addition with role head.
const RoleEmbed = "embed"

// Unique returns the keys of the weights that are multiplied, sorted and without duplicates.
func (s ModelShape) Unique() []WeightKey {
	var keys []WeightKey
	for _, w := range s.Weights {
		if w.Role != RoleEmbed {
			keys = append(keys, w.Key())
		}
	}
	slices.SortFunc(keys, WeightKey.Compare)
	return slices.Compact(keys)
}

// Digest returns the SHA-256 hash of the canonical JSON of dimensions and weights. It does not
// depend on the name or on the order of the weights.
func (s ModelShape) Digest() string {
	s.Name, s.Values = "", nil
	s.Weights = slices.Clone(s.Weights)
	slices.SortFunc(s.Weights, func(a, b WeightShape) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), a.Key().Compare(b.Key()), cmp.Compare(a.Count, b.Count))
	})
	return profiles.Digest(s)
}

// KVBytesPerToken returns an upper bound of the bytes that the keys and values of one token take in
// a cache of the given type: all layers keep their own and drop none.
func (s ModelShape) KVBytesPerToken(kv microkernel.KVType) int64 {
	values := 2 * int64(s.Layers) * int64(s.KVHeads) * int64(s.HeadDim)
	switch kv {
	case microkernel.KVF32:
		return values * 4
	case microkernel.KVQ8:
		return values * 34 / 32
	}
	return values * 2
}

// Check validates the shape. The error names the field.
func (s ModelShape) Check() error {
	for _, f := range []struct {
		name      string
		v, lo, hi int
	}{
		{"hidden", s.Hidden, 1, maxDim}, {"layers", s.Layers, 1, maxLayers}, {"heads", s.Heads, 1, maxDim},
		{"kv_heads", s.KVHeads, 1, maxDim}, {"head_dim", s.HeadDim, 1, maxDim}, {"ffn", s.FFN, 0, maxDim},
		{"vocab", s.Vocab, 1, maxDim}, {"context", s.Context, 0, 1 << 30}, {"experts", s.Experts, 0, maxCount},
		{"experts_used", s.ExpertsUsed, 0, maxCount}, {"expert_ffn", s.ExpertFFN, 0, maxDim},
	} {
		if f.v < f.lo || f.v > f.hi {
			return fmt.Errorf("model %s is %d, not in %d..%d", f.name, f.v, f.lo, f.hi)
		}
	}
	if s.Arch == "" {
		return fmt.Errorf("model has no architecture")
	}
	if s.Heads%s.KVHeads != 0 {
		return fmt.Errorf("model has %d heads, not a multiple of its %d kv_heads", s.Heads, s.KVHeads)
	}
	if s.HeadDim > maxDim/s.Heads {
		return fmt.Errorf("model has %d heads with a head_dim of %d, more than %d values", s.Heads, s.HeadDim, maxDim)
	}
	if len(s.Values) > maxLayers {
		return fmt.Errorf("model lists %d values, more than %d", len(s.Values), maxLayers)
	}
	for key, list := range s.Values {
		if len(list) == 0 || len(list) > maxLayers {
			return fmt.Errorf("model value %.80q lists %d numbers, not 1..%d", key, len(list), maxLayers)
		}
		for _, v := range list {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("model value %.80q is %v, not a finite number", key, v)
			}
		}
	}
	if len(s.Weights) == 0 || len(s.Weights) > 4096 {
		return fmt.Errorf("model lists %d weights, not 1..4096", len(s.Weights))
	}
	left := maxValues
	for _, w := range s.Weights {
		if w.Role == "" || w.Count < 1 || w.Count > maxCount {
			return fmt.Errorf("weight %q occurs %d times", w.Role, w.Count)
		}
		if err := w.Key().check(); err != nil {
			return fmt.Errorf("weight %s: %w", w.Role, err)
		}
		if w.Count > left/(w.N*w.K) {
			return fmt.Errorf("weight %s: the weights of the model have more than %d values", w.Role, maxValues)
		}
		left -= w.Count * w.N * w.K
	}
	return nil
}

// Routed reports whether a weight belongs to experts, of which each row uses some.
func (s ModelShape) Routed(w WeightShape) bool {
	return s.Experts > 0 && (w.Role == "gate" || w.Role == "up" || w.Role == "down")
}

// PerRow returns the number of matrices of a weight that a row is multiplied by: all, or those of
// its experts.
func (s ModelShape) PerRow(w WeightShape) float64 {
	if !s.Routed(w) {
		return float64(w.Count)
	}
	return float64(w.Count) * float64(s.ExpertsUsed) / float64(s.Experts)
}

// Read returns the expected number of matrices of a weight that a forward of m rows reads.
func (s ModelShape) Read(w WeightShape, m int) float64 {
	if !s.Routed(w) {
		return float64(w.Count)
	}
	return float64(w.Count) * Reached(s.ExpertsUsed, s.Experts, m)
}

// Reached returns the expected fraction of the experts that m rows use when each row uses some of
// them: 1-(1-used/experts)^m. It assumes an even and independent choice; real routers are less even
// and reach fewer experts.
func Reached(used, experts, m int) float64 {
	return 1 - math.Pow(1-float64(used)/float64(experts), float64(m))
}

// TypeBytes is the size in bytes of the multiplied matrices of one weight type: in the file, and
// packed for kernels of one rank.
type TypeBytes struct {
	Type   string `json:"type"`
	File   int64  `json:"file_bytes"`
	Panels int64  `json:"panel_bytes"`
}

// Packed returns, for each weight type in the order of the model, the bytes of its matrices in the
// file and as packed panels. It leaves out embeddings and types without kernels.
func (m ModelShape) Packed() (out []TypeBytes) {
	for _, w := range m.Weights {
		t, err := microkernel.ParseWeightType(w.Type)
		if err != nil || w.Role == RoleEmbed {
			continue
		}
		at := slices.IndexFunc(out, func(b TypeBytes) bool { return b.Type == w.Type })
		if at < 0 {
			at = len(out)
			out = append(out, TypeBytes{Type: w.Type})
		}
		l := microkernel.Layout{Type: t, N: w.N, K: w.K}
		out[at].File += int64(w.Count * w.N * t.RowBytes(w.K))
		out[at].Panels += int64(w.Count * l.Bytes())
	}
	return out
}

// Title returns the model's name as messages show it.
func (s ModelShape) Title() string {
	if s.Name != "" {
		return fmt.Sprintf("%q", message.Clip(s.Name, 60))
	}
	return "an unnamed model of architecture " + message.Clip(s.Arch, 60)
}
