package plans

import (
	"fmt"

	"sandwich/runtime/phase"
	"sandwich/topotree"
)

// ServiceConfig is the service configuration of Sandwich section 5: tensor-parallel ranks and the
// PUs of each phase. NewService makes one.
type ServiceConfig struct {
	Ranks                 []Rank
	PrefillPUs, DecodePUs topotree.CPUSet
}

// Rank is a group of threads bound to PUs and to the memory of one NUMA node.
type Rank struct {
	PUs      topotree.CPUSet `yaml:"pus" json:"pus"`
	NUMANode int             `yaml:"numa_node" json:"numa_node"` // -1: the machine has no nodes, or memory is not bound
}

// NewService returns a service configuration, or an error if it is invalid.
func NewService(ranks []Rank, prefill, decode topotree.CPUSet) (ServiceConfig, error) {
	s := ServiceConfig{Ranks: ranks, PrefillPUs: prefill, DecodePUs: decode}
	return s, s.check()
}

// TP returns the tensor-parallel degree: the number of ranks.
func (s ServiceConfig) TP() int { return len(s.Ranks) }

type namedPUs struct {
	name string
	pus  topotree.CPUSet
}

func (s *ServiceConfig) phases() [2]namedPUs {
	return [2]namedPUs{{phase.Prefill.String(), s.PrefillPUs}, {phase.Decode.String(), s.DecodePUs}}
}

func (s *ServiceConfig) check() error {
	if len(s.Ranks) < 1 || len(s.Ranks) > maxRanks {
		return fmt.Errorf("service has %d ranks, not 1..%d", len(s.Ranks), maxRanks)
	}
	var all topotree.CPUSet
	for i, r := range s.Ranks {
		if err := r.check(); err != nil {
			return fmt.Errorf("rank %d %w", i, err)
		}
		if shared := r.PUs.Intersect(all); !shared.IsEmpty() {
			return fmt.Errorf("ranks share a PU: rank %d has %s, which an earlier rank has", i, shared)
		}
		all = all.Union(r.PUs)
	}
	for _, ph := range s.phases() {
		if ph.pus.IsEmpty() {
			return fmt.Errorf("service: %s has no PUs", ph.name)
		}
		if extra := ph.pus.Minus(all); !extra.IsEmpty() {
			return fmt.Errorf("service: %s uses the PUs %s, which belong to no rank", ph.name, extra)
		}
	}
	return s.checkWork()
}

func (r Rank) check() error {
	if r.PUs.IsEmpty() {
		return fmt.Errorf("has no PU")
	}
	if r.NUMANode < -1 || r.NUMANode > maxNode {
		return fmt.Errorf("is on NUMA node %d, not in -1..%d", r.NUMANode, maxNode)
	}
	return nil
}

// checkWork checks that each rank takes part in both phases, since no other rank holds its part of
// the weights.
func (s *ServiceConfig) checkWork() error {
	for i, r := range s.Ranks {
		for _, ph := range s.phases() {
			if r.PUs.Intersect(ph.pus).IsEmpty() {
				return fmt.Errorf("service: rank %d (PUs %s) has no PU that works in %s (PUs %s), "+
					"but no other rank holds its part of the weights", i, r.PUs, ph.name, ph.pus)
			}
		}
	}
	return nil
}

// Service returns the service configuration, which the plan stores in parts.
func (p *Plan) Service() ServiceConfig {
	return ServiceConfig{Ranks: p.Ranks, PrefillPUs: p.Prefill.PUs, DecodePUs: p.Decode.PUs}
}

// TP returns the tensor-parallel degree of the plan's service configuration.
func (p *Plan) TP() int { return p.Service().TP() }
