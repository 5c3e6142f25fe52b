package compare

import (
	"fmt"
	"math"
	"path/filepath"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/tuner/search"
)

// HeuristicRow is the choice of the default heuristic at one M on a recorded machine, with its
// speed relative to the grid's best.
type HeuristicRow struct {
	Machine string  `json:"machine"`
	Weight  string  `json:"weight"`
	Compute string  `json:"compute"`
	Threads int     `json:"threads"`
	M       int     `json:"m"`
	Columns int     `json:"columns"`
	Choice  string  `json:"choice"`
	Share   float64 `json:"share,omitempty"` // relative to the best's speed; 0 if the grid lacks the choice
	// Runs tells how the choice was timed: once, again, or interleaved with the last schedules of
	// the search; elsewhere: once, on the columns named, relative to the fastest there; near: see
	// Near.
	Runs string `json:"timed,omitempty"`
	// Near is the schedule that represents a choice which the grid lacks: the same kernel with
	// slices at most one doubling away in total. Scatter is the median difference between times of
	// schedules of this kernel and of their nearest ones.
	Near    string  `json:"near,omitempty"`
	Scatter float64 `json:"scatter,omitempty"`
	Best    string  `json:"best"`
	Timed   int     `json:"schedules"`
}

// JudgeHeuristic compares the choices of the default heuristic with every grid of a folder. It
// times nothing; the heuristic knows the machine by the profile host.yaml only.
func JudgeHeuristic(dir string) (rows []HeuristicRow, err error) {
	host, err := profiles.Load(filepath.Join(dir, HostFile))
	if err != nil {
		return nil, err
	}
	files, err := grids(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		g, err := readGrid(f, host)
		if err != nil {
			return nil, err
		}
		more, err := g.judge(host)
		if err != nil {
			return nil, fmt.Errorf("grid %s: %w", f, err)
		}
		for i := range more {
			more[i].Machine = filepath.Base(filepath.Clean(dir))
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

func (g *grid) judge(host *profiles.Profile) (rows []HeuristicRow, err error) {
	maxM := 0
	for _, c := range g.Cells {
		maxM = max(maxM, c.M)
	}
	shape := oneWeight(g.Key, 1)
	plan, err := heuristic.Default(host, shape, heuristic.Options{Compute: g.Compute.String(), Threads: g.Threads,
		SeqMax: maxM})
	if err != nil {
		return nil, err
	}
	for _, c := range g.Cells {
		chosen, _ := plan.Prefill.Lookup(g.Key, c.M)
		c = g.wholeOf(c, chosen)
		best, smallest, ok := c.Best()
		if !ok {
			continue
		}
		s := g.named(chosen, gridPlace{c.M, c.Columns})
		row := HeuristicRow{Weight: g.Key.String(), Compute: g.Compute.String(), Threads: g.Threads, M: c.M,
			Columns: c.Columns,
			Choice:  chosen.String(), Best: best.String(), Timed: len(c.Timed)}
		if x, ok := c.Timed[s]; ok {
			row.Share, row.Runs = smallest/x.Seconds, "once"
			if x.Retimed {
				row.Runs = "again"
			}
			if x.Interleaved > 0 {
				best, smallest, _ = c.BestInterleaved()
				row.Share, row.Runs, row.Best = smallest/x.Interleaved, "interleaved", best.String()
			}
		} else if share, columns, ok := g.elsewhere(c, chosen); ok {
			row.Share, row.Runs, row.Columns = share, "elsewhere", columns
		} else if near, scatter, ok := c.near(s); ok {
			row.Share, row.Runs = smallest/c.Timed[near].Seconds, "near"
			row.Near, row.Scatter = near.String(), scatter
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// wholeOf returns the cell of the whole matrix if the choice and other schedules were timed there
// more than once. A choice is made for all columns, and fewer columns divide unevenly among
// threads. Interleaved times of the narrower cell take precedence over times that were not
// interleaved.
func (g *grid) wholeOf(c gridCell, chosen plans.Schedule) gridCell {
	w := c.Whole
	if w == nil {
		return c
	}
	whole, timed := w.Timed[g.named(chosen, gridPlace{w.M, w.Columns})]
	part := c.Timed[g.named(chosen, gridPlace{c.M, c.Columns})]
	if _, _, ok := w.Best(); !ok || !timed || whole.Interleaved == 0 && part.Interleaved > 0 {
		return c
	}
	return *w
}

// elsewhere returns the speed of a choice on another number of columns, relative to the fastest
// there. Schedules were timed once there, so that the fastest is biased by selection.
func (g *grid) elsewhere(c gridCell, chosen plans.Schedule) (share float64, columns int, ok bool) {
	for _, other := range c.Elsewhere {
		if t, ok := other.Timed[g.named(chosen, gridPlace{other.M, other.Columns})]; ok {
			return other.fastest() / t.Seconds, other.Columns, true
		}
	}
	return 0, 0, false
}

// nearest is the maximum distance, in doublings, of a schedule that represents another.
const nearest = 1

// near returns the timed schedule nearest to s, if one is near enough, and how much the times of
// such neighbors differ.
func (c *gridCell) near(s plans.Schedule) (near plans.Schedule, scatter float64, ok bool) {
	near, ok = c.neighbor(s)
	if !ok {
		return near, 0, false
	}
	var differ []float64
	for x, t := range c.Timed {
		if x.Kernel != near.Kernel {
			continue
		}
		if y, ok := c.neighbor(x); ok {
			differ = append(differ, math.Abs(math.Log(t.Seconds/c.Timed[y].Seconds)))
		}
	}
	return near, search.Sample{Seconds: differ}.Median(), len(differ) > 0
}

// neighbor returns the nearest other schedule of the same kernel and scheme within nearest. Among
// equals it returns the one that was timed most, then the slowest, so that no choice is overrated.
func (c *gridCell) neighbor(s plans.Schedule) (best plans.Schedule, ok bool) {
	smallest, timed := math.Inf(1), gridTime{}
	for x, t := range c.Timed {
		far, alike := c.far(x, s)
		if !alike || x == s || far > nearest || far > smallest {
			continue
		}
		if far < smallest || t.Retimed && !timed.Retimed || t.Retimed == timed.Retimed && t.Seconds > timed.Seconds {
			smallest, timed, best, ok = far, t, x, true
		}
	}
	return best, ok
}

// far returns the doublings between two schedules that differ only in sizes.
func (c *gridCell) far(x, s plans.Schedule) (doublings float64, alike bool) {
	a, b := x.Kernel, s.Kernel
	if a.Prefetch > 0 && b.Prefetch > 0 {
		doublings = doublingsOf(a.Prefetch, b.Prefetch, 0)
		a.Prefetch = b.Prefetch
	}
	if a != b || x.Widen != s.Widen || x.WaysM != s.WaysM || x.WaysN != s.WaysN || x.Pack != s.Pack {
		return 0, false
	}
	return doublings + doublingsOf(x.BM, s.BM, c.M) + doublingsOf(x.BN, s.BN, c.Columns) +
		doublingsOf(x.BK, s.BK, 0), true
}

// doublingsOf returns the absolute base-2 logarithm of the ratio of two sides of a slice. A side
// that is 0 or longer than the whole counts as the whole.
func doublingsOf(a, b, whole int) float64 {
	const long = 1 << 14
	side := func(n int) float64 {
		switch {
		case whole > 0 && (n == 0 || n > whole):
			n = whole
		case n == 0:
			n = long
		}
		return math.Log2(float64(n))
	}
	return math.Abs(side(a) - side(b))
}
