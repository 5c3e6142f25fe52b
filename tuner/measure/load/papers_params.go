package load

import (
	"fmt"

	"gopkg.in/yaml.v3"
)

// XPUParams are the parameters of Agent.xpu's evaluation, as docs/papers.params.yaml lists them.
type XPUParams struct {
	Models   [2]string // 3B and 8B
	Type     string    // of the weights
	Minutes  float64   // of a trace
	Context  int
	Chunk    int
	Batch    int     // sequences that run at once
	FLOPs    float64 // per second, of each device
	Read     float64 // bytes per second
	Reactive []float64
	// Proactive is the rate of proactive requests in figures 9 and 10. Growth has the rates between
	// which the paper says how reactive latency grows.
	Proactive float64
	Growth    []float64
	Sets      []string  // of figure 8
	Rates     []float64 // of figure 8

	Reduced, Proactives [2][]float64 // by model: percent less latency than the baseline
	Grown               [2]float64   // by model: percent
	Throughput          []float64    // on the second set, times that of the baseline
	More                float64      // percent more requests at a second per token
	Pending             float64      // seconds
}

// xpuGroup is the group of the file.
const xpuGroup = "agentxpu"

// ParseXPUParams reads the text of docs/papers.params.yaml.
func ParseXPUParams(text []byte) (p XPUParams, err error) {
	var doc map[string]map[string]struct {
		Value any `yaml:"value"`
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return p, fmt.Errorf("the file of parameters is invalid: %w", err)
	}
	r := paramReader{values: map[string]any{}}
	for name, v := range doc[xpuGroup] {
		r.values[name] = v.Value
	}
	p = XPUParams{Models: [2]string{r.text("small"), r.text("large")}, Type: r.text("type"),
		Minutes: r.number("minutes"), Context: int(r.number("context")), Chunk: int(r.number("chunk")),
		Batch: int(r.number("batch")), FLOPs: r.number("device_flops"), Read: r.number("read"),
		Reactive: r.numbers("reactive", 1), Proactive: r.number("proactive"), Growth: r.numbers("growth_rates", 2),
		Sets: r.texts("figure8_sets", 3), Rates: r.numbers("figure8_rates", 1),
		Throughput: r.numbers("throughput_samsum", 2), More: r.number("more_requests"), Pending: r.number("pending")}
	for i, size := range []string{"small", "large"} {
		p.Reduced[i] = r.numbers("reduced_"+size, len(p.Reactive))
		p.Proactives[i] = r.numbers("proactive_"+size, 2)
		p.Grown[i] = r.number("growth_" + size)
	}
	return p, r.err
}

// paramReader reads values and keeps the first error.
type paramReader struct {
	values map[string]any
	err    error
}

func (r *paramReader) fail(name, want string) {
	if r.err == nil {
		r.err = fmt.Errorf("the file of parameters has no %s.%s with %s", xpuGroup, name, want)
	}
}

// positive returns a value as a number, and whether it is a positive one.
func positive(v any) (float64, bool) {
	switch n := v.(type) {
	case int:
		return float64(n), n > 0
	case float64:
		return n, n > 0
	}
	return 0, false
}

func (r *paramReader) number(name string) float64 {
	v, ok := positive(r.values[name])
	if !ok {
		r.fail(name, "a positive number")
	}
	return v
}

func (r *paramReader) text(name string) string {
	s, _ := r.values[name].(string)
	if s == "" {
		r.fail(name, "a text")
	}
	return s
}

// numbers returns a list of at least n positive numbers.
func (r *paramReader) numbers(name string, n int) (out []float64) {
	list, _ := r.values[name].([]any)
	for _, x := range list {
		if v, ok := positive(x); ok {
			out = append(out, v)
		}
	}
	if len(out) < max(n, len(list), 1) {
		r.fail(name, fmt.Sprintf("a list of at least %d positive numbers", n))
		return make([]float64, max(n, 1))
	}
	return out
}

// texts returns a list of n texts.
func (r *paramReader) texts(name string, n int) (out []string) {
	list, _ := r.values[name].([]any)
	for _, x := range list {
		s, _ := x.(string)
		out = append(out, s)
	}
	if len(out) != n {
		r.fail(name, fmt.Sprintf("a list of %d texts", n))
		return make([]string, n)
	}
	return out
}
