package tuner

import (
	"fmt"
	"math"
	"path/filepath"

	"sandwich/plans"
	"sandwich/plans/thumb"
	"sandwich/profiles"
)

// ThumbRow is what the rules of thumb choose at one M on a recorded machine, and what share of the
// grid's best they reach.
type ThumbRow struct {
	Machine string  `json:"machine"`
	Weight  string  `json:"weight"`
	Compute string  `json:"compute"`
	Threads int     `json:"threads"`
	M       int     `json:"m"`
	Columns int     `json:"columns"`
	Choice  string  `json:"choice"`
	Share   float64 `json:"share,omitempty"` // of the best's speed; 0 where the grid lacks the choice
	Runs    string  `json:"timed,omitempty"` // once or again
	// Near is the share of the schedule that is most like a choice that the grid lacks: the same
	// register tile, prefetch and unrolling, in other slices.
	Near  float64 `json:"near,omitempty"`
	Best  string  `json:"best"`
	Timed int     `json:"schedules"`
}

// JudgeThumb asks the rules of thumb for every grid of a folder, by its host.yaml, without timing
// anything. A machine is known to the rules by its profile alone.
func JudgeThumb(dir string) (rows []ThumbRow, err error) {
	host, err := profiles.Load(filepath.Join(dir, "host.yaml"))
	if err != nil {
		return nil, err
	}
	files, err := grids(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		g, err := readGrid(f)
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

func (g *grid) judge(host *profiles.Profile) (rows []ThumbRow, err error) {
	maxM := 0
	for _, c := range g.Cells {
		maxM = max(maxM, c.M)
	}
	shape := oneWeight(g.Key, 1)
	plan, err := thumb.Default(host, shape, thumb.Options{Compute: g.Compute.String(), Threads: g.Threads,
		SeqMax: maxM})
	if err != nil {
		return nil, err
	}
	for _, c := range g.Cells {
		best, t, ok := c.Best()
		if !ok {
			continue
		}
		s, _ := plan.Prefill.Lookup(g.Key, c.M)
		row := ThumbRow{Weight: g.Key.String(), Compute: g.Compute.String(), Threads: g.Threads, M: c.M,
			Columns: c.Columns,
			Choice:  s.String(), Best: best.String(), Timed: len(c.Timed)}
		if x, ok := c.Timed[s]; ok {
			row.Share, row.Runs = t.Seconds/x.Seconds, "once"
			if x.Retimed {
				row.Runs = "again"
			}
		} else {
			row.Near = c.near(s, t)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// near is the share of the schedule of the same kernel whose slice is most like s; 0 for none.
func (c *gridCell) near(s plans.Schedule, best gridTime) (share float64) {
	least := math.Inf(1)
	for x, t := range c.Timed {
		if x.Kernel != s.Kernel || x.Widen != s.Widen {
			continue
		}
		far := apart(x.BM, s.BM, c.M) + apart(x.BN, s.BN, c.Columns) + apart(x.BK, s.BK, 0)
		if x.WaysM != s.WaysM || x.WaysN != s.WaysN || x.Pack != s.Pack {
			far++
		}
		if far < least || far == least && best.Seconds/t.Seconds < share {
			least, share = far, best.Seconds/t.Seconds
		}
	}
	return share
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
