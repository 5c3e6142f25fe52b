// Package execgraph describes a forward as a heterogeneous execution graph (Agent.xpu, section
// 4.2): kernels with a variant for each target, and edges with the data that they pass on. Times
// are those of the forecasts from which a placement is chosen; the package has no cost model of its
// own.
package execgraph

import (
	"cmp"
	"fmt"

	"sandwich/microkernel"
	"sandwich/runtime/model"
	"sandwich/runtime/phase"
	"sandwich/topotree"
)

// Names that are not those of kernels: the target of the workers, and the ends of edges that leave
// the forward.
const (
	Cores    = "cores"
	sampling = "sampling"
	cacheOf  = "KV cache of "
)

// Graph is the execution graph of a forward. Times are in seconds. Its JSON is stable.
type Graph struct {
	Phase    string   `json:"phase"`
	Rows     int      `json:"rows"`
	Context  int      `json:"context"` // positions before the rows
	Kernels  []Kernel `json:"kernels"` // in order of execution within their layers
	Edges    []Edge   `json:"edges"`
	Launches float64  `json:"launch_seconds,omitempty"` // of all segments on devices
	Seconds  float64  `json:"seconds,omitempty"`        // of the forward as bound, with launches and moves
	Unknown  bool     `json:"unknown,omitempty"`        // Seconds is not known
}

// Kernel is a group of consecutive ops of a layer that run on one target, or of several layers with
// equal ops and times.
type Kernel struct {
	Name     string    `json:"kernel"`
	Layers   string    `json:"layers,omitempty"` // "" outside the layers
	Count    int       `json:"count"`            // number of layers, at least 1
	Ops      []string  `json:"ops"`
	Variants []Variant `json:"variants"` // by target
	Bound    string    `json:"bound"`    // target
}

// Variant is a kernel on a target.
type Variant struct {
	Target string `json:"target"`
	// Rows is "dynamic" if one program computes any number of rows. "dynamic, static" says that the
	// products also have programs for the rows of waiting prompts, which compile in the background.
	Rows    string  `json:"rows"`
	Unknown bool    `json:"unknown,omitempty"` // Seconds and Bytes are not known
	Seconds float64 `json:"seconds"`           // of one layer
	Bytes   float64 `json:"bytes"`             // of weights, keys, values and activations that it reads and writes
}

// Edge is data that one kernel writes and another one reads, in one layer.
type Edge struct {
	From    string  `json:"from"`
	To      string  `json:"to"`
	Carries string  `json:"carries"`
	Bytes   float64 `json:"bytes"`
	Count   int     `json:"count"` // number of such edges in a forward
	Moves   bool    `json:"moves"` // between the memory of two targets
	Seconds float64 `json:"seconds,omitempty"`
	// Overlapped reports whether the data moves before a later forward reads it and not in this
	// one, so that its time does not count.
	Overlapped bool `json:"overlapped,omitempty"`
}

// Target predicts the ops of a forward on the cores or on a device.
type Target struct {
	Name     string
	Unknown  bool      // times and bytes are not known
	Seconds  []float64 // by op
	Bytes    []float64 // by op
	Static   []bool    // by op; nil: no op has programs for fixed rows
	Launches float64   // of the segments of a forward
	// Seconds of a byte to and from a device. Unused for the cores.
	Send, Receive float64
}

// Options describes a forward.
type Options struct {
	Model   *model.Model
	Phase   phase.Phase
	Rows    int
	Heads   int // rows whose logits are wanted
	Context int // positions before the rows of each sequence
	KV      microkernel.KVType
	Cores   *Target
	Device  *Target // nil: none is known
	// Bound is the target of the ops. The cores run kernels with ops that devices do not compute.
	Bound string
	// Other is the target of attention in the other phase, whose cache gets keys and values too.
	Other string
}

// New returns the graph of a forward. It fails if a kernel has no predicted time on its target.
func New(o Options) (*Graph, error) {
	g := &Graph{Phase: o.Phase.String(), Rows: o.Rows, Context: o.Context}
	b := builder{Options: o, graph: g, groups: groupOps(o.Model), group: make([]int, len(o.Model.Ops))}
	b.kernel = make([]int, len(b.groups))
	if err := b.kernels(); err != nil {
		return nil, err
	}
	b.flow()
	for i := range g.Kernels {
		k := &g.Kernels[i]
		v := k.bound()
		g.Seconds += float64(k.Count) * v.Seconds
		g.Unknown = g.Unknown || v.Unknown
		if k.Bound != Cores {
			g.Launches = o.Device.Launches
		}
	}
	g.Seconds += g.Launches
	for _, e := range g.Edges {
		if !e.Overlapped {
			g.Seconds += float64(e.Count) * e.Seconds
		}
	}
	if g.Unknown {
		g.Seconds = 0
	}
	return g, nil
}

// bound returns the variant on which the kernel runs, nil if there is none.
func (k *Kernel) bound() *Variant {
	for i := range k.Variants {
		if k.Variants[i].Target == k.Bound {
			return &k.Variants[i]
		}
	}
	return nil
}

// builder adds kernels and edges to a graph.
type builder struct {
	Options
	graph  *Graph
	groups []group
	kernel []int                  // by group: index in graph.Kernels
	group  []int                  // by op: index in groups
	layers []topotree.CPUSet      // by kernel
	holds  map[model.Buf][]string // targets that have the last value of an activation
}

// kernels adds the kernel of each group of ops, or counts it where there is an equal one.
func (b *builder) kernels() error {
	known := map[string]int{}
	for n := range b.groups {
		g := &b.groups[n]
		k, err := b.kernelOf(g)
		if err != nil {
			return err
		}
		key := fmt.Sprint(k)
		at, ok := known[key]
		if !ok {
			at = len(b.graph.Kernels)
			known[key] = at
			b.graph.Kernels = append(b.graph.Kernels, k)
			b.layers = append(b.layers, topotree.CPUSet{})
		}
		b.graph.Kernels[at].Count++
		if g.layer >= 0 {
			b.layers[at] = b.layers[at].Union(topotree.NewCPUSet(g.layer))
		}
		for _, i := range g.ops {
			b.group[i] = n
		}
		b.kernel[n] = at
	}
	for i := range b.graph.Kernels {
		if !b.layers[i].IsEmpty() {
			b.graph.Kernels[i].Layers = b.layers[i].String()
		}
	}
	return nil
}

// kernelOf returns the kernel of a group, with a count of 0.
func (b *builder) kernelOf(g *group) (k Kernel, err error) {
	k.Name, k.Bound = g.name, b.Bound
	for _, i := range g.ops {
		k.Ops = append(k.Ops, opName(&b.Model.Ops[i]))
	}
	k.Variants = append(k.Variants, b.Cores.variant(g.ops))
	if g.onCores {
		k.Bound = Cores
	} else if b.Device != nil {
		k.Variants = append(k.Variants, b.Device.variant(g.ops))
	}
	if k.bound() == nil {
		return k, fmt.Errorf("kernel %s has no variant on %s", g.name, k.Bound)
	}
	return k, nil
}

// variant returns the kernel of some ops on a target.
func (t *Target) variant(ops []int) Variant {
	v := Variant{Target: t.Name, Rows: "dynamic", Unknown: t.Unknown}
	for _, i := range ops {
		v.Seconds += t.Seconds[i]
		v.Bytes += t.Bytes[i]
		if t.Static != nil && t.Static[i] {
			v.Rows = "dynamic, static"
		}
	}
	return v
}

// Label returns the name of a kernel in edges. Its layers are part of it only if another kernel has
// its name.
func (g *Graph) Label(k *Kernel) string {
	for i := range g.Kernels {
		if o := &g.Kernels[i]; o.Name == k.Name && o.Layers != k.Layers {
			return k.Name + " " + cmp.Or(k.Layers, "-")
		}
	}
	return k.Name
}
