package profiles

import (
	"fmt"
	"strconv"
	"strings"

	"sandwich/topotree"
)

// Names of figures of PU sets.
const (
	Peak       = "peak"       // FLOP/s or OP/s of multiply-adds on registers
	Saturation = "saturation" // B/s that the PUs together read from their nearest memory
	Flows      = "flows"      // B/s of several concurrent flows together
	Barrier    = "barrier"    // seconds per barrier of the worker pool
	AllReduce  = "all-reduce" // seconds to sum one matrix of each rank and distribute the sum
)

// Interleaved is the node of a flow whose pages are interleaved over all nodes.
const Interleaved = -1

// SetFigure is a figure of a set of active PUs. The name determines which fields other than domain
// and cpus are set.
type SetFigure struct {
	Name   string          `yaml:"name" json:"name"`
	Domain string          `yaml:"domain" json:"domain"` // part of the machine that has the PUs
	CPUs   topotree.CPUSet `yaml:"cpus" json:"cpus"`     // active PUs
	ISA    string          `yaml:"isa,omitempty" json:"isa,omitempty"`
	Type   string          `yaml:"type,omitempty" json:"type,omitempty"`
	Flows  []Flow          `yaml:"flows,omitempty" json:"flows,omitempty"`
	Ranks  int             `yaml:"ranks,omitempty" json:"ranks,omitempty"`
	Bytes  int64           `yaml:"bytes,omitempty" json:"bytes,omitempty"` // of the matrix of one rank
	Figure `yaml:",inline"`
}

// Flow is a set of PUs that read the memory of one node, or memory that is interleaved over all
// nodes.
type Flow struct {
	CPUs topotree.CPUSet `yaml:"cpus" json:"cpus"`
	Node int             `yaml:"node" json:"node"` // OS index, or Interleaved
}

// MarshalYAML writes a figure on one line.
func (f SetFigure) MarshalYAML() (any, error) {
	type plain SetFigure
	return FlowYAML(plain(f))
}

// MachineDomain is the domain of all PUs.
const MachineDomain = "machine"

// NodeDomain returns the domain of the PUs of a memory node.
func NodeDomain(id int) string { return "node " + strconv.Itoa(id) }

// ClusterDomain returns the domain of the PUs that share a last-level cache. It is named after the
// lowest PU, since not all systems number caches.
func ClusterDomain(cpus topotree.CPUSet) string { return clusterPrefix + strconv.Itoa(cpus.First()) }

// GroupDomain returns the domain of PUs that a measurement found to form a cluster, named after the
// lowest PU.
func GroupDomain(cpus topotree.CPUSet) string { return groupPrefix + strconv.Itoa(cpus.First()) }

const (
	clusterPrefix = "cluster of PU "
	groupPrefix   = "group of PU "
)

// checkDomain rejects domains of saturation curves other than the fixed names, by which readers
// find curves.
func checkDomain(name string) error {
	if name == MachineDomain {
		return nil
	}
	for _, prefix := range []string{"node ", clusterPrefix, groupPrefix} {
		if number, ok := strings.CutPrefix(name, prefix); ok {
			if n, err := strconv.Atoi(number); err == nil && n >= 0 && n <= MaxPU && strconv.Itoa(n) == number {
				return nil
			}
		}
	}
	return fmt.Errorf("unknown domain; use machine, node N, %sP or %sP", clusterPrefix, groupPrefix)
}

const (
	maxFlows  = 64
	maxReduce = 1 << 40 // bytes
)

func (f SetFigure) check() error {
	what := fmt.Sprintf("%.40s of %.40s with PUs %.40s", f.Name, f.Domain, f.CPUs)
	if f.CPUs.IsEmpty() {
		return fmt.Errorf("%s: cpus is empty", what)
	}
	var err error
	switch f.Name {
	case Peak:
		if f.ISA == "" || f.Type == "" {
			err = fmt.Errorf("isa or type is missing")
		}
	case Saturation:
		err = checkDomain(f.Domain)
	case Flows:
		err = f.checkFlows()
	case Barrier:
	case AllReduce:
		if f.Ranks < 2 || f.Ranks > MaxPU || f.Bytes < 1 || f.Bytes > maxReduce {
			err = fmt.Errorf("invalid number of ranks %d or bytes %d", f.Ranks, f.Bytes)
		}
	default:
		err = fmt.Errorf("unknown name; use %s, %s, %s, %s or %s", Peak, Saturation, Flows, Barrier, AllReduce)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return f.Figure.Check(what)
}

func (f SetFigure) checkFlows() error {
	if len(f.Flows) == 0 || len(f.Flows) > maxFlows {
		return fmt.Errorf("%d flows, not in 1..%d", len(f.Flows), maxFlows)
	}
	var all topotree.CPUSet
	for _, flow := range f.Flows {
		if flow.CPUs.IsEmpty() || flow.CPUs.Intersects(all) || flow.Node < Interleaved || flow.Node > MaxPU {
			return fmt.Errorf("invalid flow of PUs %.40s from node %d", flow.CPUs, flow.Node)
		}
		all = all.Union(flow.CPUs)
	}
	if !all.Equal(f.CPUs) {
		return fmt.Errorf("cpus is not the union of the PUs of the flows, %.40s", all)
	}
	return nil
}
