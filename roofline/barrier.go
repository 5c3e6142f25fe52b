package roofline

import (
	"math"
	"slices"

	"sandwich/profiles"
	"sandwich/topotree"
)

// assumedBarrier is the duration of a barrier in seconds if none was measured.
const assumedBarrier = 2e-6

// Barrier returns the seconds per barrier of a set of PUs. It is linear between recorded numbers of
// PUs and continues the slope beyond the last one. It is at least that of a recorded subset and at
// most that of a recorded superset.
func (m *Machine) Barrier(set topotree.CPUSet) Answer {
	if set.Count() < 2 {
		return Answer{From: "one PU needs no barrier"}
	}
	var c curve
	low, high, assumed := 0.0, math.Inf(1), false
	for _, f := range m.profile.Sets {
		if f.Name != profiles.Barrier {
			continue
		}
		if f.CPUs.Equal(set) {
			return recorded{f.CPUs, f.Median, f.Figure}.answer()
		}
		c.add(float64(f.CPUs.Count()), f.Median)
		assumed = assumed || !f.Measured()
		if f.CPUs.In(set) {
			low = math.Max(low, f.Median)
		}
		if set.In(f.CPUs) {
			high = math.Min(high, f.Median)
		}
	}
	if !c.known() {
		return Answer{assumedBarrier, true, "assumed for any threads"}
	}
	c.rise()
	n := float64(set.Count())
	a := Answer{math.Max(low, math.Min(c.growing(n), high)), assumed, "by the number of PUs"}
	if n > c.last() {
		a.Assumed, a.From = true, "growing beyond the recorded sets"
	}
	return a
}

// AllReduce returns the seconds in which ranks sum a matrix of some bytes from each of them and
// receive the sum. It is linear between recorded sizes and numbers of ranks, constant below the
// smallest size, and continues the slope beyond the largest. Without records it is two barriers of
// one PU per rank plus reading all matrices once.
func (m *Machine) AllReduce(bytes int64, ranks int) Answer {
	if ranks < 2 || bytes <= 0 {
		return Answer{From: "there is only one rank"}
	}
	sizes, assumed := map[int]*curve{}, false
	for _, f := range m.profile.Sets {
		if f.Name == profiles.AllReduce {
			if sizes[f.Ranks] == nil {
				sizes[f.Ranks] = &curve{}
			}
			sizes[f.Ranks].add(float64(f.Bytes), f.Median)
			assumed = assumed || !f.Measured()
		}
	}
	if len(sizes) == 0 {
		return m.assumedReduce(bytes, ranks)
	}
	var c curve
	for r, s := range sizes {
		s.rise()
		c.add(float64(r), s.growing(float64(bytes)))
	}
	c.rise()
	a := Answer{c.growing(float64(ranks)), assumed, "by bytes and ranks"}
	if _, ok := sizes[ranks]; !ok && float64(ranks) > c.last() {
		a.Assumed, a.From = true, "growing beyond the recorded ranks"
	}
	return a
}

func (m *Machine) assumedReduce(bytes int64, ranks int) Answer {
	read := m.byCount(memoryLevel, ranks)
	if !read.Known() || read.Value <= 0 {
		return Answer{}
	}
	wait := assumedBarrier
	for _, f := range slices.Backward(m.profile.Sets) {
		if f.Name == profiles.Barrier && f.CPUs.Count() == ranks {
			wait = f.Median
		}
	}
	return Answer{2*wait + float64(bytes)*float64(ranks+1)/read.Value, true, "two barriers and the matrices read once"}
}
