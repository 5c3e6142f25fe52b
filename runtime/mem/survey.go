package mem

import "fmt"

// Survey is where the memory of some buffers was found at one time: their addresses, and the NUMA
// node of pages taken evenly over each. Two surveys of the same buffers tell what moved in between.
type Survey struct {
	Known bool // false where the system cannot tell nodes; addresses are compared all the same
	list  []surveyed
}

type surveyed struct {
	buffer *Buffer
	at     uintptr
	bytes  int
	nodes  []int32 // of the sampled pages; negative: not faulted in
}

// SurveyOf looks up to `pages` pages of each buffer (0: all of them) up, about 0.1 microseconds
// each. The buffers must not be freed meanwhile. nil buffers are passed over.
func SurveyOf(pages int, buffers ...*Buffer) (Survey, error) {
	s := Survey{Known: true}
	for _, b := range buffers {
		if b == nil || len(b.data) == 0 {
			continue
		}
		one := surveyed{buffer: b, at: uintptr(b.Pointer()), bytes: len(b.data)}
		all := len(b.data) / pageSize
		n := all
		if pages > 0 {
			n = min(n, pages)
		}
		at := make([]uintptr, n)
		for i := range at {
			at[i] = one.at + uintptr(i*all/n*pageSize)
		}
		nodes, known, err := nodesOf(at)
		if err != nil {
			return Survey{}, fmt.Errorf("asking where %s are: %w", FormatBytes(int64(one.bytes)), err)
		}
		one.nodes = nodes
		s.Known = s.Known && known
		s.list = append(s.list, one)
	}
	return s, nil
}

// Bytes is the size of all buffers.
func (s Survey) Bytes() (total int64) {
	for i := range s.list {
		total += int64(s.list[i].bytes)
	}
	return total
}

// On returns how many bytes lie on each node, extrapolated from the pages that were looked up;
// those not faulted in are left out. nil where the system cannot tell.
func (s Survey) On() map[int]int64 {
	if !s.Known {
		return nil
	}
	out := map[int]int64{}
	for i := range s.list {
		for _, node := range s.list[i].nodes {
			if node >= 0 {
				out[int(node)] += s.list[i].perPage()
			}
		}
	}
	return out
}

// Remote is the fraction of the present memory that is not on the node its buffer was asked for;
// buffers of AnyNode are nowhere remote. 0 where the system cannot tell.
func (s Survey) Remote() float64 {
	var present, remote int64
	for i := range s.list {
		one := &s.list[i]
		for _, node := range one.nodes {
			if node < 0 {
				continue
			}
			present += one.perPage()
			if want := one.buffer.node; want >= 0 && int(node) != want {
				remote += one.perPage()
			}
		}
	}
	if present == 0 {
		return 0
	}
	return float64(remote) / float64(present)
}

// Moved is how many bytes are not where an earlier survey of the same buffers, with as many pages,
// found them: at another address, or on another node. Pages that one of the two did not find in
// memory do not count. A buffer that the earlier one does not have counts whole.
func (s Survey) Moved(before Survey) (bytes int64) {
	for i := range s.list {
		now := &s.list[i]
		if i >= len(before.list) || before.list[i].buffer != now.buffer || before.list[i].at != now.at ||
			len(before.list[i].nodes) != len(now.nodes) {
			bytes += int64(now.bytes)
			continue
		}
		for j, node := range now.nodes {
			if old := before.list[i].nodes[j]; old >= 0 && node >= 0 && old != node {
				bytes += now.perPage()
			}
		}
	}
	return bytes
}

// perPage is how many bytes each sampled page stands for.
func (s *surveyed) perPage() int64 { return int64(s.bytes / max(1, len(s.nodes))) }
