package hwloc

import (
	"fmt"
	"strconv"
	"strings"

	"sandwich/topotree"
)

const maxDistanceNodes = 1024

// xmlDistances collects one distance table: distances2 of formats 2.x and 3.x, distances of 1.x.
type xmlDistances struct {
	kind, by, base string
	count          int64
	indexes        []int
	values         []int
}

func (d *xmlDistances) addIndexes(text string) error {
	for field := range strings.FieldsSeq(text) {
		n, err := strconv.Atoi(strings.TrimPrefix(field, "NUMANode:"))
		if err != nil {
			d.kind = "" // indexes of other object types
			return nil
		}
		d.indexes = append(d.indexes, n)
	}
	if len(d.indexes) > maxDistanceNodes {
		return fmt.Errorf("a distance table has more than %d nodes", maxDistanceNodes)
	}
	return nil
}

func (d *xmlDistances) addValues(text string) error {
	for field := range strings.FieldsSeq(text) {
		n, err := strconv.Atoi(field)
		if err != nil || n < 0 {
			n = 0
		}
		if d.values = append(d.values, n); len(d.values) > maxDistanceNodes*maxDistanceNodes {
			return fmt.Errorf("a distance table has more than %d nodes", maxDistanceNodes)
		}
	}
	return nil
}

// latency adds one value of format 1.x, which is divided by latency_base.
func (d *xmlDistances) latency(text string) {
	v, err := strconv.ParseFloat(text, 64)
	base, err2 := strconv.ParseFloat(d.base, 64)
	if err != nil || err2 != nil || !(v*base >= 0 && v*base < 1e6) || len(d.values) > maxDistanceNodes*
		maxDistanceNodes {
		v, base = 0, 0
	}
	d.values = append(d.values, int(v*base+0.5))
}

// finish keeps the table if it covers all NUMA nodes. Format 1.x does not name the nodes: they are
// those of the document in order, which follow the table, so bindDistances adds them.
func (d *xmlDistances) finish(m *topotree.Machine) {
	n := len(d.indexes)
	if d.kind == "" && d.by == "" && d.base != "" {
		n = int(min(d.count, maxDistanceNodes))
	} else if d.kind != "NUMANode" || d.by != "os" {
		return
	}
	if n < 1 || len(d.values) != n*n || m.Distances != nil {
		return
	}
	out := &topotree.Distances{Nodes: d.indexes}
	for i := range n {
		out.Matrix = append(out.Matrix, d.values[i*n:(i+1)*n])
	}
	m.Distances = out
}

// bindDistances assigns the nodes of the document to a table of format 1.x, and drops a table of
// another size.
func bindDistances(m *topotree.Machine) {
	d := m.Distances
	if d == nil || len(d.Nodes) > 0 {
		return
	}
	if len(d.Matrix) != len(m.Memory) {
		m.Distances = nil
		return
	}
	nodes := make([]int, len(m.Memory))
	for i, n := range m.Memory {
		nodes[i] = n.ID
	}
	m.Distances = &topotree.Distances{Nodes: nodes, Matrix: d.Matrix}
}
