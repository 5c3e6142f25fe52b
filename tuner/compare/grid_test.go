package compare

import (
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/runtime/refdata"
)

// gridText returns a journal of one weight at two M. At M = 9 the kernel 7x32 is best by its later
// runs, and another that was timed once is not, although its time is less. At 1024 columns too few
// were timed.
func gridText() string {
	var b strings.Builder
	fmt.Fprintln(&b, `{"format":"sandwich tune journal","version":1,"key":{"fingerprint":"sha256:0"}}`)
	line := func(m, n int, schedule string, nth int, seconds float64) {
		fmt.Fprintf(&b,
			`{"trial":"pus 0-1 for exhaustive 0 2048x2048:q8_0 int8 m %d n %d %s","nth":%d,"seconds":[%g],"cost":1}`+
				"\n", m, n, schedule, nth, seconds)
	}
	const tile = "avx512/int8/q8_0/7x32/ku32/load/vnni/pf2048 slice "
	for i := range minTimed {
		slice := fmt.Sprintf("%dx%dx%d", 14*(1+i/32), 32*(i%32+1), 32*(1+i/32))
		line(9, 2048, tile+slice, 0, 3e-3)
		line(300, 1024, tile+slice, 0, 3e-3)
	}
	line(9, 2048, tile+"7x32xall ways 1x2", 0, 1e-4) // an outlier
	for nth := range minRuns {
		line(9, 2048, tile+"7x64xall packed", nth, []float64{1e-4, 2e-3, 2e-3}[nth])
	}
	line(9, 1024, tile+"7x64xall", 0, 1e-3)
	line(300, 2048, tile+"14x64xall", 0, 4e-3)
	for nth := range minRuns {
		line(300, 2048, tile+"28x64xall", nth, 2e-3)
	}
	b.WriteString(`{"trial":"pus 0-1 for exhaustive 0 2048x2048:q8_0 int8 m 9 n 20`) // an incomplete line
	return b.String()
}

// TestBestInterleaved checks that the fastest schedule of those that an exhaustive search timed
// many times interleaved is the best, regardless of single times of others. Many calls of one run,
// and runs of another search, do not count.
func TestBestInterleaved(t *testing.T) {
	text := strings.TrimSuffix(gridText(), "\n")
	text = text[:strings.LastIndex(text, "\n")+1]
	const tile = "avx512/int8/q8_0/7x32/ku32/load/vnni/pf2048 slice "
	add := func(strategy, slice string, nth int, seconds float64) {
		text += fmt.Sprintf(`{"trial":"pus 0-1 for %s 0 2048x2048:q8_0 int8 m 9 n 2048 %s","nth":%d,"seconds":[%g],"cost":1}`+"\n",
			strategy, tile+slice, nth, seconds)
	}
	best := func() (string, bool) {
		g, err := parseGrid(strings.NewReader(text))
		if err != nil || g.Cells[0].M != 9 {
			t.Fatalf("%+v, %v", g, err)
		}
		best, _, ok := g.Cells[0].BestInterleaved()
		return best.String(), ok
	}
	text += fmt.Sprintf(`{"trial":"pus 0-1 for exhaustive 0 2048x2048:q8_0 int8 m 9 n 2048 %s14x32xall","nth":%d,`+
		`"seconds":[5e-4,5e-4,5e-4,5e-4,5e-4,5e-4,5e-4,5e-4,5e-4],"cost":1}`+"\n", tile, 1)
	for nth := range settledRuns {
		add("exhaustive", "14x96xall", nth, 2.2e-3)
		add("sandwich", "14x128xall", nth, 2.1e-3)
	}
	if got, ok := best(); ok {
		t.Errorf("one run less than settles: %s", got)
	}
	add("exhaustive", "14x96xall", settledRuns, 2.2e-3)
	add("sandwich", "14x128xall", settledRuns, 2.1e-3)
	if got, _ := best(); !strings.HasSuffix(got, " slice 10x96xall") { // of 7x32 at 9 rows
		t.Errorf("settled: %s", got)
	}
}

func TestReadGrid(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "q8_0-2048x2048.jsonl.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	host, err := profiles.Builtin(profiles.BuiltinNames()[0])
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	fmt.Fprint(z, strings.Replace(gridText(), "sha256:0", host.Fingerprint(), 1))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	g, err := readGrid(path, host)
	if err != nil {
		t.Fatal(err)
	}
	if g.Key != (plans.WeightKey{N: 2048, K: 2048, Type: "q8_0"}) || g.Threads != 2 || len(g.Cells) != 2 {
		t.Fatalf("%+v of %d cells", g, len(g.Cells))
	}
	c := g.Cells[0]
	best, took, ok := c.Best()
	if !ok || c.M != 9 || c.Columns != 2048 || took != 2e-3 || !strings.HasSuffix(best.String(),
		"/5x32/ku32/load/vnni/pf2048 slice 5x64xall packed") { // 9 rows run so
		t.Errorf("m %d, %d columns: %s in %g, %v", c.M, c.Columns, best, took, ok)
	}
	if _, _, ok := g.Cells[1].Best(); ok {
		t.Error("a schedule that was timed once is the best of a grid")
	}
	testNear(t, g)
	testWhole(t, g)
	other, err := profiles.Builtin(profiles.BuiltinNames()[1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readGrid(path, other); !errors.Is(err, ErrGrid) {
		t.Errorf("a grid of another machine: %v", err)
	}
	if files, err := grids(dir); err != nil || len(files) != 1 {
		t.Error(files, err)
	}
	if _, err := grids(t.TempDir()); err == nil {
		t.Error("a folder without grids is no error")
	}
}

// testNear looks up schedules that the grid lacks.
func testNear(t *testing.T, g *grid) {
	const tile = "avx512/int8/q8_0/7x32/ku32/load/vnni/pf"
	c := g.Cells[0]
	for text, want := range map[string]bool{
		tile + "2048 slice 14x1056x32":                               true,  // 33 tiles of columns, 32 were timed
		tile + "4096 slice 14x1024x32":                               true,  // another distance
		tile + "2048 slice 14x1024xall":                              false, // too far
		tile + "2048 slice 14x1024x32 ways 1x2":                      false, // another scheme
		"avx512/int8/q8_0/4x48/ku32/load/vnni/pf2048 slice 12x48x32": false, // another tile
	} {
		s, err := plans.ParseSchedule(text)
		if err != nil {
			t.Fatal(err)
		}
		near, scatter, ok := c.near(g.named(s, gridPlace{c.M, c.Columns}))
		if ok != want || ok && (c.Timed[near].Seconds != 3e-3 || scatter != 0) {
			t.Errorf("%s: %s, %g, %v", text, near, scatter, ok)
		}
	}
}

// testWhole checks that a choice that was timed on all columns is judged there if something was
// timed again.
func testWhole(t *testing.T, g *grid) {
	t.Helper()
	for slice, columns := range map[string]int{"14x64xall": 2048, "14x32xall": 1024} {
		s, err := plans.ParseSchedule("avx512/int8/q8_0/7x32/ku32/load/vnni/pf2048 slice " + slice)
		if err != nil {
			t.Fatal(err)
		}
		if c := g.wholeOf(g.Cells[1], s); c.M != 300 || c.Columns != columns {
			t.Errorf("%s is judged at %d rows on %d columns, want %d", slice, c.M, c.Columns, columns)
		}
	}
	s, err := plans.ParseSchedule("avx512/int8/q8_0/7x32/ku32/load/vnni/pf2048 slice 7x64xall")
	if err != nil {
		t.Fatal(err)
	}
	if c := g.wholeOf(g.Cells[0], s); c.Columns != 2048 {
		t.Errorf("all columns are not those of the matrix but %d", c.Columns)
	}
}

func TestParseGridRefuses(t *testing.T) {
	head, rest, _ := strings.Cut(gridText(), "\n")
	for name, text := range map[string]string{
		"empty":           "",
		"another file":    "{}\n" + rest,
		"version":         strings.Replace(head, `"version":1`, `"version":7`, 1) + "\n" + rest,
		"no trial":        head + "\n",
		"negative time":   head + "\n" + strings.Replace(rest, "[0.003]", "[-1]", 1),
		"two weights":     head + "\n" + strings.Replace(rest, "2048x2048:q8_0", "4096x2048:q8_0", 1),
		"no schedule":     head + "\n" + strings.Replace(rest, "slice 14x32x32", "slice", 1),
		"unknown compute": head + "\n" + strings.Replace(rest, " int8 m", " int3 m", 1),
		"no rows":         head + "\n" + strings.Replace(rest, " m 9 ", " m 0 ", 1),
		"too many rows":   head + "\n" + strings.Replace(rest, " m 9 ", " m 99999999999999999999 ", 1),
		"long line":       head + "\n" + strings.Repeat("x", maxGridLine+1),
	} {
		if g, err := parseGrid(strings.NewReader(text)); err == nil {
			t.Errorf("%s: %d cells", name, len(g.Cells))
		}
	}
}

// FuzzParseGrid checks that reading any journal ends with a grid or an error.
func FuzzParseGrid(f *testing.F) {
	text := gridText()
	head, rest, _ := strings.Cut(text, "\n")
	one, _, _ := strings.Cut(rest, "\n")
	f.Add(head + "\n" + one)
	f.Add(head + "\n" + strings.Replace(one, "14x", "999999999x", 1))
	f.Add(head + "\n" + strings.Replace(one, "xall", "x7 ways 2x2 packed", 1))
	f.Fuzz(func(t *testing.T, text string) {
		g, err := parseGrid(strings.NewReader(text))
		if err == nil && (g.Key.N < 1 || g.Threads < 0) {
			t.Errorf("%+v", g)
		}
	})
}

// TestJudgeHeuristic uses a recorded machine: every cell has a choice, and rates of the profile
// change some of them.
func TestJudgeHeuristic(t *testing.T) {
	dir := refdata.Path(t, "machines/zen5-2c")
	rows, err := JudgeHeuristic(dir)
	if err != nil || len(rows) < 30 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	found := 0
	for _, r := range rows {
		if r.Choice == "" || r.Best == "" || r.M < 1 || r.Share < 0 {
			t.Errorf("%+v", r)
		}
		if r.Share > 0 {
			found++
		}
	}
	if found == 0 {
		t.Error("no choice is in a grid")
	}
	host, err := profiles.Load(filepath.Join(dir, "host.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	host.Ceilings = nil
	g, err := readGrid(filepath.Join(dir, "q4_0-5632x2048.jsonl.gz"), host)
	if err != nil {
		t.Fatal(err)
	}
	unmeasured, err := g.judge(host)
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for _, u := range unmeasured {
		for _, r := range rows {
			if r.Weight == u.Weight && r.M == u.M && r.Choice == u.Choice {
				same++
			}
		}
	}
	if same == len(unmeasured) {
		t.Error("what the probe measured changes no choice")
	}
}
