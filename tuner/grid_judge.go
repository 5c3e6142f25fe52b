package tuner

import (
	"fmt"
	"math"
	"path/filepath"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/tuner/search"
)

// HeuristicRow is what the default heuristic choose at one M on a recorded machine, and what share
// of the grid's best they reach.
type HeuristicRow struct {
	Machine string  `json:"machine"`
	Weight  string  `json:"weight"`
	Compute string  `json:"compute"`
	Threads int     `json:"threads"`
	M       int     `json:"m"`
	Columns int     `json:"columns"`
	Choice  string  `json:"choice"`
	Share   float64 `json:"share,omitempty"` // of the best's speed; 0 where the grid lacks the choice
	// once, again, or in turn with the last few of the search; elsewhere: once, on the columns
	// named, as a share of the fastest there; near: see Near
	Runs string `json:"timed,omitempty"`
	// Near is the schedule that stands for a choice which the grid lacks: the same kernel in
	// slices that are together at most one doubling from those chosen. Scatter is by how much,
	// in the median, times of schedules of this kernel differ from those of their nearest ones.
	Near    string  `json:"near,omitempty"`
	Scatter float64 `json:"scatter,omitempty"`
	Best    string  `json:"best"`
	Timed   int     `json:"schedules"`
}

// JudgeHeuristic asks the default heuristic for every grid of a folder, by its host.yaml, without
// timing anything. A machine is known to the rules by its profile alone.
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
		best, least, ok := c.Best()
		if !ok {
			continue
		}
		s := g.named(chosen, gridPlace{c.M, c.Columns})
		row := HeuristicRow{Weight: g.Key.String(), Compute: g.Compute.String(), Threads: g.Threads, M: c.M,
			Columns: c.Columns,
			Choice:  chosen.String(), Best: best.String(), Timed: len(c.Timed)}
		if x, ok := c.Timed[s]; ok {
			row.Share, row.Runs = least/x.Seconds, "once"
			if x.Retimed {
				row.Runs = "again"
			}
			if x.Interleaved > 0 {
				best, least, _ = c.BestInterleaved()
				row.Share, row.Runs, row.Best = least/x.Interleaved, "interleaved", best.String()
			}
		} else if share, columns, ok := g.elsewhere(c, chosen); ok {
			row.Share, row.Runs, row.Columns = share, "elsewhere", columns
		} else if near, scatter, ok := c.near(s); ok {
			row.Share, row.Runs = least/c.Timed[near].Seconds, "near"
			row.Near, row.Scatter = near.String(), scatter
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// wholeOf is the cell of the whole matrix where the choice was timed there, and others again, as
// the best of a search are. It is for all columns: slices of 352 of 5,632, which two threads take
// in turn, leave one of them idle for a quarter of the time where a search tried them on 1,024.
// But what was timed in turn with the best says more than what was timed some seconds apart.
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

// elsewhere is the share of a choice on another number of columns, where what was timed was timed
// once: of the fastest there, which had luck besides.
func (g *grid) elsewhere(c gridCell, chosen plans.Schedule) (share float64, columns int, ok bool) {
	for _, other := range c.Elsewhere {
		if t, ok := other.Timed[g.named(chosen, gridPlace{other.M, other.Columns})]; ok {
			return other.fastest() / t.Seconds, other.Columns, true
		}
	}
	return 0, 0, false
}

// nearest is how far, in doublings, a schedule may be from the one that stands for it.
const nearest = 1

// near is the timed schedule that is most like s, if one is near enough, and what the grid says
// of how much the times of such neighbors differ.
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

// neighbor is the nearest other schedule of the same kernel and scheme within nearest; among
// equals the one that was timed most, and then the slowest: no choice is flattered.
func (c *gridCell) neighbor(s plans.Schedule) (best plans.Schedule, ok bool) {
	least, timed := math.Inf(1), gridTime{}
	for x, t := range c.Timed {
		far, alike := c.far(x, s)
		if !alike || x == s || far > nearest || far > least {
			continue
		}
		if far < least || t.Retimed && !timed.Retimed || t.Retimed == timed.Retimed && t.Seconds > timed.Seconds {
			least, timed, best, ok = far, t, x, true
		}
	}
	return best, ok
}

// far is how many doublings lie between two schedules that differ in sizes alone.
func (c *gridCell) far(x, s plans.Schedule) (doublings float64, alike bool) {
	a, b := x.Kernel, s.Kernel
	if a.Prefetch > 0 && b.Prefetch > 0 {
		doublings = apart(a.Prefetch, b.Prefetch, 0)
		a.Prefetch = b.Prefetch
	}
	if a != b || x.Widen != s.Widen || x.WaysM != s.WaysM || x.WaysN != s.WaysN || x.Pack != s.Pack {
		return 0, false
	}
	return doublings + apart(x.BM, s.BM, c.M) + apart(x.BN, s.BN, c.Columns) + apart(x.BK, s.BK, 0), true
}

// apart is how many times one side of a slice is another, as a logarithm; what is longer than the
// whole is the whole, and so is 0.
func apart(a, b, whole int) float64 {
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
