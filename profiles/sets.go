package profiles

import (
	"fmt"
	"strconv"
	"strings"

	"sandwich/topotree"
)

// Names of the figures of PU sets.
const (
	Peak       = "peak"       // FLOP/s or OP/s of multiply-adds on registers
	Saturation = "saturation" // B/s that the PUs read together from the memory nearest to them
	Flows      = "flows"      // B/s of several flows at once, all together
	Barrier    = "barrier"    // seconds from one barrier of the worker pool to the next
	AllReduce  = "all-reduce" // seconds to sum one matrix of each rank and to hand the sum to all
)

// Interleaved is the node of a flow whose pages lie on all nodes in turn.
const Interleaved = -1

// SetFigure is a figure of one set of PUs at work. Which fields it has beside domain and cpus
// depends on its name.
type SetFigure struct {
	Name   string          `yaml:"name" json:"name"`
	Domain string          `yaml:"domain" json:"domain"` // what the PUs are part of
	CPUs   topotree.CPUSet `yaml:"cpus" json:"cpus"`     // the PUs at work
	ISA    string          `yaml:"isa,omitempty" json:"isa,omitempty"`
	Type   string          `yaml:"type,omitempty" json:"type,omitempty"`
	Flows  []Flow          `yaml:"flows,omitempty" json:"flows,omitempty"`
	Ranks  int             `yaml:"ranks,omitempty" json:"ranks,omitempty"`
	Bytes  int64           `yaml:"bytes,omitempty" json:"bytes,omitempty"` // of the matrix of one rank
	Figure `yaml:",inline"`
}

// Flow is PUs that read the memory of one node, or of all nodes in turn.
type Flow struct {
	CPUs topotree.CPUSet `yaml:"cpus" json:"cpus"`
	Node int             `yaml:"node" json:"node"` // the system's number, or Interleaved
}

// MarshalYAML writes a figure on one line.
func (f SetFigure) MarshalYAML() (any, error) {
	type plain SetFigure
	return FlowYAML(plain(f))
}

// MachineDomain is all PUs.
const MachineDomain = "machine"

// NodeDomain is the PUs of a memory node.
func NodeDomain(id int) string { return "node " + strconv.Itoa(id) }

// ClusterDomain is the PUs that share a last-level cache. They are named by the lowest of them,
// since caches have no number that every system tells.
func ClusterDomain(cpus topotree.CPUSet) string { return clusterPrefix + strconv.Itoa(cpus.First()) }

// GroupDomain is PUs of which a measurement found that they belong together, named by the lowest of
// them.
func GroupDomain(cpus topotree.CPUSet) string { return groupPrefix + strconv.Itoa(cpus.First()) }

const (
	clusterPrefix = "cluster of PU "
	groupPrefix   = "group of PU "
)

// checkDomain refuses a domain of a saturation curve that has none of the fixed names: readers find
// curves by them.
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
	return fmt.Errorf("the domain is none of machine, node N, %sP and %sP", clusterPrefix, groupPrefix)
}

const (
	maxFlows  = 64
	maxReduce = 1 << 40 // bytes
)

func (f SetFigure) check() error {
	what := fmt.Sprintf("%.40s of %.40s with PUs %.40s", f.Name, f.Domain, f.CPUs)
	if f.CPUs.IsEmpty() {
		return fmt.Errorf("%s: no PU is named", what)
	}
	var err error
	switch f.Name {
	case Peak:
		if f.ISA == "" || f.Type == "" {
			err = fmt.Errorf("the instruction set or the data type is missing")
		}
	case Saturation:
		err = checkDomain(f.Domain)
	case Flows:
		err = f.checkFlows()
	case Barrier:
	case AllReduce:
		if f.Ranks < 2 || f.Ranks > MaxPU || f.Bytes < 1 || f.Bytes > maxReduce {
			err = fmt.Errorf("%d ranks sum %d bytes", f.Ranks, f.Bytes)
		}
	default:
		err = fmt.Errorf("the name is none of %s, %s, %s, %s and %s", Peak, Saturation, Flows, Barrier, AllReduce)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return f.Figure.Check(what)
}

func (f SetFigure) checkFlows() error {
	if len(f.Flows) == 0 || len(f.Flows) > maxFlows {
		return fmt.Errorf("%d flows", len(f.Flows))
	}
	var all topotree.CPUSet
	for _, flow := range f.Flows {
		if flow.CPUs.IsEmpty() || flow.CPUs.Intersects(all) || flow.Node < Interleaved || flow.Node > MaxPU {
			return fmt.Errorf("a flow of PUs %.40s from node %d", flow.CPUs, flow.Node)
		}
		all = all.Union(flow.CPUs)
	}
	if !all.Equal(f.CPUs) {
		return fmt.Errorf("its flows are of PUs %.40s", all)
	}
	return nil
}
