package plans

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// WeightKey identifies a product C[M,N] = A[M,K] W[N,K]^T up to M. Each key has its own kernel
// table.
type WeightKey struct {
	N    int    `json:"n"`
	K    int    `json:"k"`
	Type string `json:"type"`
}

// String returns the key as NxK:type, for example 4096x4096:q8_0.
func (k WeightKey) String() string { return fmt.Sprintf("%dx%d:%s", k.N, k.K, k.Type) }

// parseWeightKey parses the result of String.
func parseWeightKey(text string) (WeightKey, error) {
	shape, typ, ok := strings.Cut(text, ":")
	if !ok {
		return WeightKey{}, fmt.Errorf("weight %.40q is not NxK:type", text)
	}
	d, err := dims("weight", shape, 2)
	if err != nil {
		return WeightKey{}, err
	}
	k := WeightKey{d[0], d[1], typ}
	return k, k.check()
}

// KeyText is a WeightKey that files store as text. It is a separate type, since structs that embed
// WeightKey would inherit its marshalling methods.
type KeyText WeightKey

// MarshalText implements encoding.TextMarshaler.
func (k KeyText) MarshalText() ([]byte, error) { return []byte(WeightKey(k).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *KeyText) UnmarshalText(text []byte) error {
	key, err := parseWeightKey(string(text))
	*k = KeyText(key)
	return err
}

// Compare orders keys by N, K and type.
func (k WeightKey) Compare(o WeightKey) int {
	return cmp.Or(cmp.Compare(k.N, o.N), cmp.Compare(k.K, o.K), cmp.Compare(k.Type, o.Type))
}

// dims parses n numbers joined by x.
func dims(what, text string, n int) ([]int, error) {
	parts := strings.Split(text, "x")
	if len(parts) != n {
		return nil, fmt.Errorf("%s %.40q is not %d numbers joined by x", what, text, n)
	}
	out := make([]int, n)
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil {
			return nil, fmt.Errorf("%s %.40q: %.20q is not a number", what, text, p)
		}
		out[i] = v
	}
	return out, nil
}

// check validates the dimensions and the type of a weight.
func (k WeightKey) check() error {
	if k.N < 1 || k.N > maxDim || k.K < 1 || k.K > maxDim {
		return fmt.Errorf("shape %dx%d is not within 1..%d", k.N, k.K, maxDim)
	}
	if k.Type == "" || len(k.Type) > 16 {
		return fmt.Errorf("type %.40q is not a tensor type", k.Type)
	}
	return nil
}
