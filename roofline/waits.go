package roofline

import (
	"math"
	"slices"

	"sandwich/profiles"
	"sandwich/topotree"
)

// assumedBarrier is the seconds of a barrier of some threads where none was measured.
const assumedBarrier = 2e-6

// Barrier is the seconds from one barrier of a set of PUs to the next. Between recorded numbers of
// PUs it is linear, and beyond the last it grows as it did before; it is never below that of a
// recorded part of the set nor above that of a recorded set around it. One PU waits for nobody.
func (m *Machine) Barrier(set topotree.CPUSet) Answer {
	if set.Count() < 2 {
		return Answer{From: "one PU waits for nobody"}
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
		return Answer{assumedBarrier, true, "assumed of any threads"}
	}
	c.rise()
	n := float64(set.Count())
	a := Answer{math.Max(low, math.Min(c.growing(n), high)), assumed, "by the number of PUs"}
	if n > c.last() {
		a.Assumed, a.From = true, "growing beyond the recorded sets"
	}
	return a
}

// AllReduce is the seconds in which some ranks sum a matrix of so many bytes from each of them and
// have the sum. Between recorded sizes and numbers of ranks it is linear; below the smallest size
// it is that of the smallest, beyond the largest it grows as it did before. Without a record it is
// two barriers of a PU of each rank, and all matrices read once at the bandwidth of as many PUs.
func (m *Machine) AllReduce(bytes int64, ranks int) Answer {
	if ranks < 2 || bytes <= 0 {
		return Answer{From: "there is nothing to sum"}
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
