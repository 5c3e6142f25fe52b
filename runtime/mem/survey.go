package mem

import "fmt"

// Survey records the addresses of some buffers at one time, and the NUMA nodes of pages sampled
// evenly over each. Moved compares two surveys of the same buffers.
type Survey struct {
	Known bool // false if the system does not report nodes; Moved then compares only addresses
	list  []surveyed
}

type surveyed struct {
	buffer *Buffer
	at     uintptr
	bytes  int
	nodes  []int32 // of the sampled pages; negative: not faulted in
}

// SurveyOf returns a survey of at most the given number of pages of each buffer (0: all pages),
// which takes about 0.1 microseconds per page. The buffers must not be freed during the call. nil
// buffers are skipped.
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
			return Survey{}, fmt.Errorf("reading the NUMA nodes of %s: %w", FormatBytes(int64(one.bytes)), err)
		}
		one.nodes = nodes
		s.Known = s.Known && known
		s.list = append(s.list, one)
	}
	return s, nil
}

// Bytes returns the total size of the buffers.
func (s Survey) Bytes() (total int64) {
	for i := range s.list {
		total += int64(s.list[i].bytes)
	}
	return total
}

// On returns the number of bytes on each node, extrapolated from the sampled pages. Pages that are
// not faulted in do not count. It returns nil if the system does not report nodes.
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

// Remote returns the fraction of the present memory that is not on the requested node of its
// buffer. Buffers of AnyNode are never remote. It returns 0 if the system does not report nodes.
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

// Moved returns the number of bytes that are at another address or on another node than in an
// earlier survey of the same buffers with as many pages. Pages that are not present in both surveys
// do not count. A buffer that the earlier survey does not have counts in full.
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

// perPage returns the number of bytes that each sampled page represents.
func (s *surveyed) perPage() int64 { return int64(s.bytes / max(1, len(s.nodes))) }
