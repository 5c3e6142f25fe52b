package compare

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/profiles/retention"
	"sandwich/topotree"
	"sandwich/tuner/search"
	"sandwich/tuner/trials"
)

// grid is a table of timed schedules, read from the journal of a comparison of searches. It has the
// speed of the choices of a search or a heuristic on the machine of the journal.
type grid struct {
	Fingerprint string // of the machine
	Key         plans.WeightKey
	Compute     microkernel.Compute
	Threads     int
	Cells       []gridCell // by M
}

// gridCell has the schedules that were timed at one M.
type gridCell struct {
	M, Columns int
	Elsewhere  []gridCell                  // the same M on other numbers of columns
	Whole      *gridCell                   // the same M on all columns, if this cell has fewer
	Timed      map[plans.Schedule]gridTime // by the name of all schedules that run alike
}

// gridTime is the duration of one schedule.
type gridTime struct {
	Seconds float64
	Retimed bool // the samples exclude the run by which the schedule was chosen
	// Interleaved is the duration in the final rounds of the exhaustive search, interleaved with
	// the other remaining schedules; 0 without such rounds.
	Interleaved float64
}

// A schedule counts as timed again from minRuns runs on. A search repeats the best schedules
// only. The first run of a winner is biased by its selection and is left out.
const (
	minRuns     = 3
	settledRuns = 8       // of the exhaustive search, after the first
	minTimed    = 100     // minimum schedules of an M that is judged
	maxGridText = 1 << 30 // bytes of an uncompressed journal
	maxGridLine = 1 << 16
	maxGridSide = 1 << 20 // rows, columns or k of a weight
)

var gridTrial = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^pus (\S+) for (\S+) (\d+) (\d+)x(\d+):(\S+) (\S+) m (\d+) n (\d+) (.*)$`)
})

// openGrid opens a journal of `bench search`, compressed by gzip or not. It limits the number of
// bytes read.
func openGrid(path string) (io.ReadCloser, error) {
	f, err := retention.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	in := gridFile{Reader: f, file: f}
	if strings.HasSuffix(path, ".gz") {
		if in.Reader, err = gzip.NewReader(f); err != nil {
			f.Close()
			return nil, fmt.Errorf("grid %s: %w", path, err)
		}
	}
	return in, nil
}

type gridFile struct {
	io.Reader
	file *os.File
}

func (g gridFile) Close() error { return g.file.Close() }

// readGrid reads a journal of `bench search` on a machine. It rejects one of another machine.
func readGrid(path string, host *profiles.Profile) (*grid, error) {
	in, err := openGrid(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	all := &io.LimitedReader{R: in, N: maxGridText}
	g, err := parseGrid(all)
	switch {
	case err == nil && all.N == 0:
		err = fmt.Errorf("it has more than %d bytes", maxGridText-1)
	case err == nil && g.Fingerprint != host.Fingerprint():
		err = fmt.Errorf("%w: it was recorded on another machine than %s in its folder describes (%s); give each "+
			"machine a folder", ErrGrid, HostFile, host.Host.CPUModel)
	}
	if err != nil {
		return nil, fmt.Errorf("grid %s: %w", path, err)
	}
	return g, nil
}

// gridRuns has all runs of one schedule at one M and number of columns.
type gridRuns struct {
	first, later []float64 // seconds of the calls of the first run, and of later ones
	runs         int
	exhaustive   []float64 // seconds of the later runs by the exhaustive search, which interleaves schedules
	interleaved  int       // number of these runs
}

type gridPlace struct{ m, columns int }

func parseGrid(in io.Reader) (*grid, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxGridLine)
	if !lines.Scan() {
		return nil, errors.Join(trials.ErrNoJournal, lines.Err())
	}
	key, err := trials.ParseHead(lines.Bytes())
	if err != nil {
		return nil, err
	}
	g := grid{Fingerprint: key.Fingerprint}
	all := map[gridPlace]map[plans.Schedule]*gridRuns{}
	for n := 2; lines.Scan(); n++ {
		if err := g.add(all, lines.Bytes()); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if g.Key.N == 0 {
		return nil, errors.New("it has no trial of a comparison of searches")
	}
	g.Cells = cellsOf(all, g.Key.N)
	return &g, nil
}

// add adds one trial. It ignores an incomplete last line and trials of other measurements.
func (g *grid) add(all map[gridPlace]map[plans.Schedule]*gridRuns, text []byte) error {
	t, ok, err := parseTrialLine(text)
	if err != nil || !ok {
		return err
	}
	if g.Key.N == 0 {
		g.Key, g.Compute, g.Threads = t.key, t.compute, t.threads
	}
	if g.Key != t.key || g.Compute != t.compute || g.Threads != t.threads {
		return fmt.Errorf("a trial of %s in %s on %d threads among those of %s in %s on %d", t.key, t.compute,
			t.threads, g.Key, g.Compute, g.Threads)
	}
	if all[t.at] == nil {
		all[t.at] = map[plans.Schedule]*gridRuns{}
	}
	schedule := g.named(t.schedule, t.at)
	r := all[t.at][schedule]
	if r == nil {
		r = &gridRuns{}
		all[t.at][schedule] = r
	}
	if r.runs++; r.runs == 1 {
		r.first = t.seconds
		return nil
	}
	r.later = append(r.later, t.seconds...)
	if t.strategy == "exhaustive" {
		r.exhaustive = append(r.exhaustive, t.seconds...)
		r.interleaved++
	}
	return nil
}

// trialLine is a trial of a journal of `bench search`.
type trialLine struct {
	strategy string
	key      plans.WeightKey
	compute  microkernel.Compute
	threads  int
	at       gridPlace
	schedule plans.Schedule
	seconds  []float64
}

// parseTrialLine parses a line of a journal. ok is false for an incomplete line and for trials of
// other measurements.
func parseTrialLine(text []byte) (t trialLine, ok bool, err error) {
	name, seconds := trials.ParseTrial(text)
	x := gridTrial().FindStringSubmatch(name)
	if len(seconds) == 0 || x == nil {
		return t, false, nil
	}
	var sizes [4]int
	for i, group := range []int{4, 5, 8, 9} {
		n, err := strconv.Atoi(x[group])
		if err != nil || n < 1 || n > maxGridSide {
			return t, false, fmt.Errorf("a size of %.20s; sizes are from 1 to %d", x[group], maxGridSide)
		}
		sizes[i] = n
	}
	for _, s := range seconds {
		if !(s > 0) || math.IsInf(s, 0) {
			return t, false, fmt.Errorf("a call took %g seconds", s)
		}
	}
	t = trialLine{strategy: x[2], key: plans.WeightKey{N: sizes[0], K: sizes[1], Type: x[6]},
		at: gridPlace{sizes[2], sizes[3]}, seconds: seconds}
	if t.compute, err = microkernel.ParseCompute(x[7]); err != nil {
		return t, false, err
	}
	pus, err := topotree.ParseCPUSet(x[1])
	if err != nil {
		return t, false, err
	}
	t.threads = pus.Count()
	t.schedule, err = plans.ParseSchedule(x[10])
	return t, err == nil, err
}

// named returns the common name of a schedule and of those that run alike.
func (g *grid) named(s plans.Schedule, at gridPlace) plans.Schedule {
	return search.Alike(s, g.Key, at.m, at.columns, g.Threads)
}

// cellsOf makes a cell for each M from the number of columns at which most schedules were timed. It
// keeps the other cells, including that of the whole matrix, in Elsewhere and Whole.
func cellsOf(all map[gridPlace]map[plans.Schedule]*gridRuns, n int) (out []gridCell) {
	best := map[int]gridPlace{}
	for at, timed := range all {
		have, ok := best[at.m]
		more := len(timed) - len(all[have])
		if !ok || more > 0 || more == 0 && at.columns > have.columns {
			best[at.m] = at
		}
	}
	for m, at := range best {
		if len(all[at]) < minTimed {
			continue
		}
		c := cellOf(at, all[at])
		for other, timed := range all {
			if other.m == m && other != at && len(timed) >= minTimed {
				c.Elsewhere = append(c.Elsewhere, cellOf(other, timed))
			}
		}
		if whole := (gridPlace{m, n}); whole != at && len(all[whole]) > 0 {
			w := cellOf(whole, all[whole])
			c.Whole = &w
		}
		slices.SortFunc(c.Elsewhere, func(a, b gridCell) int { return b.Columns - a.Columns })
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b gridCell) int { return a.M - b.M })
	return out
}

func cellOf(at gridPlace, timed map[plans.Schedule]*gridRuns) gridCell {
	c := gridCell{M: at.m, Columns: at.columns, Timed: map[plans.Schedule]gridTime{}}
	for name, r := range timed {
		c.Timed[name] = r.time()
	}
	return c
}

func (r *gridRuns) time() gridTime {
	t := gridTime{Retimed: r.runs >= minRuns}
	if r.interleaved >= settledRuns {
		t.Interleaved = search.Sample{Seconds: r.exhaustive}.Fast()
	}
	samples := r.later
	if !t.Retimed {
		samples = append(slices.Clone(r.first), r.later...)
	}
	t.Seconds = search.Sample{Seconds: samples}.Fast()
	return t
}

// fastest returns the minimum of all times. It is biased by selection.
func (c *gridCell) fastest() float64 {
	smallest := math.Inf(1)
	for _, t := range c.Timed {
		smallest = min(smallest, t.Seconds)
	}
	return smallest
}

// Best returns the fastest schedule that was timed again, or false without one.
func (c *gridCell) Best() (best plans.Schedule, seconds float64, ok bool) {
	return c.best(func(t gridTime) float64 {
		if !t.Retimed {
			return 0
		}
		return t.Seconds
	})
}

// BestInterleaved returns the fastest of the schedules that were timed many times interleaved.
func (c *gridCell) BestInterleaved() (best plans.Schedule, seconds float64, ok bool) {
	return c.best(func(t gridTime) float64 { return t.Interleaved })
}

// best returns the schedule with the least positive seconds.
func (c *gridCell) best(of func(gridTime) float64) (best plans.Schedule, seconds float64, ok bool) {
	for s, t := range c.Timed {
		x := of(t)
		if x > 0 && (!ok || x < seconds || x == seconds && s.String() < best.String()) {
			best, seconds, ok = s, x, true
		}
	}
	return best, seconds, ok
}

// grids lists the journals of a folder.
func grids(dir string) ([]string, error) {
	var out []string
	for _, pattern := range []string{"*.jsonl", "*.jsonl.gz"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		out = append(out, files...)
	}
	if slices.Sort(out); len(out) == 0 {
		return nil, fmt.Errorf("%s has no grids; record some with `sandwich bench search --record %s`", dir, dir)
	}
	return out, nil
}
