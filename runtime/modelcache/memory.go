package modelcache

import (
	"fmt"
	"maps"
	"slices"

	"sandwich/runtime/mem"
)

// Memory is memory in bytes by NUMA node; mem.AnyNode is memory that is bound to no node.
type Memory map[int]int64

// Total returns the sum over all nodes.
func (m Memory) Total() (sum int64) {
	for _, n := range m {
		sum += n
	}
	return sum
}

// plus returns the sum of m and sign times o.
func (m Memory) plus(o Memory, sign int64) Memory {
	out := maps.Clone(m)
	if out == nil {
		out = Memory{}
	}
	for node, n := range o {
		if out[node] += sign * n; out[node] == 0 {
			delete(out, node)
		}
	}
	return out
}

// Budget limits the memory of models in bytes: in total, and on NUMA nodes. 0 and nodes without an
// entry are not limited.
type Budget struct {
	Total int64
	Nodes Memory
}

// Check returns an error if the budget does not admit memory.
func (b Budget) Check(m Memory) error {
	if n := m.Total(); b.Total > 0 && n > b.Total {
		return fmt.Errorf("%s exceed the memory budget of %s", mem.FormatBytes(n), mem.FormatBytes(b.Total))
	}
	for _, node := range slices.Sorted(maps.Keys(m)) {
		if limit, limited := b.Nodes[node]; limited && node != mem.AnyNode && m[node] > limit {
			return fmt.Errorf("%s on NUMA node %d exceed the %s that are available there", mem.FormatBytes(m[node]),
				node, mem.FormatBytes(limit))
		}
	}
	return nil
}
