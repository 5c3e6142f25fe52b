package trials

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sandwich/internal/num"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/profiles/retention"
	"sandwich/tuner/search"
)

// Kernel trials are kept in one file per host and build, of at most maxWisdom bytes when it is
// opened, for the newest retention.Builds builds of a host, because another build may have other
// kernels.
const (
	wisdomPrefix  = "wisdom-"
	wisdomSuffix  = ".jsonl"
	maxWisdom     = 4 << 20
	maxWisdomRead = 4 * maxWisdom // maximum bytes read: a file grows while runs append to it
)

// WisdomPath returns the file in folder that holds the finished kernel trials of a host and build.
func WisdomPath(folder string, host *profiles.Profile, build string) string {
	return filepath.Join(folder, wisdomPrefix+shortHash(host.Fingerprint())+"-"+shortHash(build)+wisdomSuffix)
}

func shortHash(digest string) string {
	digest = strings.TrimPrefix(digest, "sha256:")
	return digest[:min(16, len(digest))]
}

// Forget removes the kernel trials of all hosts and builds from a folder and returns their number.
func Forget(folder string) (trials int, err error) {
	files, err := filepath.Glob(filepath.Join(folder, wisdomPrefix+"*"+wisdomSuffix))
	if err != nil {
		return 0, err
	}
	for _, path := range files {
		data, err := retention.ReadRegular(path, maxWisdomRead)
		if err != nil {
			return trials, fmt.Errorf("forgetting kernel trials: %w", err)
		}
		if err := os.Remove(path); err != nil {
			return trials, fmt.Errorf("forgetting kernel trials: %w", err)
		}
		trials += bytes.Count(data, []byte("\n"))
	}
	return trials, nil
}

// wisdomLine is a finished trial: the winner at one M of one kernel table, in the form of
// evidence.Trial in the evidence.
type wisdomLine struct {
	Problem  string         `json:"problem"` // everything that determines what is timed, as the caller names it
	M        int            `json:"m"`
	Effort   string         `json:"effort"`
	Share    float64        `json:"share_s"` // time of the search
	Schedule plans.Schedule `json:"schedule"`
	Seconds  []float64      `json:"seconds"`
	Stage    string         `json:"stage"`
	Tried    int            `json:"tried"`
	Rival    float64        `json:"rival_s,omitempty"`
}

// Wisdom holds the trials that earlier runs of a build on a host finished, for any model. Lines are
// appended whole, so that a kill damages at most the last one, which is skipped. Several runs may
// write at the same time.
type Wisdom struct {
	file *os.File
	kept map[string]wisdomLine // by problem and M; later lines replace earlier ones
}

func wisdomKey(problem string, m int) string { return fmt.Sprintf("%s at m %d", problem, m) }

// OpenWisdom reads the file at path and opens it for appending. It creates the file and its folder,
// removes the files of old builds and skips lines that it cannot decode.
func OpenWisdom(path string) (*Wisdom, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("kernel trials of earlier runs: %w", err)
	}
	name := strings.TrimSuffix(filepath.Base(path), wisdomSuffix)
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		_ = retention.Newest(path, name[:i+1], wisdomSuffix) // on failure more files than necessary remain
	}
	f, err := retention.OpenUpdate(path, os.O_APPEND)
	if err != nil {
		return nil, fmt.Errorf("kernel trials of earlier runs: %w", err)
	}
	w := &Wisdom{file: f, kept: map[string]wisdomLine{}}
	if err := w.load(); err != nil {
		f.Close()
		return nil, fmt.Errorf("kernel trials of earlier runs in %s: %w", path, err)
	}
	return w, nil
}

// load reads all lines. If the file is longer than maxWisdom, it keeps the newest lines.
func (w *Wisdom) load() error {
	data, err := io.ReadAll(io.LimitReader(w.file, maxWisdomRead))
	if err != nil {
		return err
	}
	var order []string
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var l wisdomLine
		if json.Unmarshal(lines.Bytes(), &l) != nil || !l.sound() {
			continue
		}
		key := wisdomKey(l.Problem, l.M)
		w.kept[key] = l
		order = append(order, key)
	}
	if len(data) > maxWisdom {
		return w.shorten(order)
	}
	if n := len(data); n > 0 && data[n-1] != '\n' { // incomplete: the next line must start on its own
		_, err = w.file.Write([]byte("\n"))
	}
	return err
}

// shorten replaces the file by one with the newest lines, at most half of maxWisdom.
func (w *Wisdom) shorten(order []string) error {
	var newest [][]byte
	seen, size := map[string]bool{}, 0
	for _, key := range slices.Backward(order) {
		if seen[key] {
			continue
		}
		seen[key] = true
		data, err := json.Marshal(w.kept[key])
		if err != nil {
			return err
		}
		if size += len(data) + 1; size > maxWisdom/2 {
			delete(w.kept, key)
			continue
		}
		newest = append(newest, append(data, '\n'))
	}
	slices.Reverse(newest)
	path := w.file.Name()
	if err := retention.WriteFile(path, bytes.Join(newest, nil)); err != nil {
		return err
	}
	w.file.Close()
	var err error
	w.file, err = retention.OpenUpdate(path, os.O_APPEND)
	return err
}

// sound reports whether a line is a valid trial.
func (l *wisdomLine) sound() bool {
	for _, s := range append(l.Seconds, l.Share, l.Rival) {
		if !(s >= 0) || math.IsInf(s, 0) {
			return false
		}
	}
	_, err := search.ParseEffort(l.Effort)
	return err == nil && l.M > 0 && len(l.Seconds) > 0
}

// Lookup returns the stored trial of a problem at some M: as finished if a new search would not
// have more effort or time, otherwise as hints for schedules to try. A schedule that does not fit
// the problem is ignored.
func (w *Wisdom) Lookup(problem string, p search.Problem, effort search.Effort, share float64,
) (known []search.Anchor, hints map[int]plans.Schedule) {
	hints = map[int]plans.Schedule{}
	if w == nil {
		return nil, hints
	}
	for _, m := range p.Anchors {
		l, ok := w.kept[wisdomKey(problem, m)]
		if !ok || l.Schedule.Fits(p.Key, p.Compute, p.Threads) != nil {
			continue
		}
		then, err := search.ParseEffort(l.Effort)
		if err == nil && then.Reps >= effort.Reps && l.Share >= shareWorth*share {
			known = append(known, search.Anchor{M: m, Schedule: l.Schedule, Seconds: l.Seconds, Stage: l.Stage,
				Tried: l.Tried, Rival: l.Rival})
			continue
		}
		hints[m] = l.Schedule
	}
	return known, hints
}

// shareWorth is the minimum time of a stored search relative to the time that a new search would
// have.
const shareWorth = 0.25

// Keep stores the trials of a search that it did not take from elsewhere.
func (w *Wisdom) Keep(problem string, r *search.Result, known []search.Anchor, effort search.Effort,
	share float64) error {
	if w == nil {
		return nil
	}
	var out bytes.Buffer
	for _, a := range r.Anchors {
		old := slices.ContainsFunc(known, func(k search.Anchor) bool { return k.M == a.M })
		if len(a.Seconds) == 0 || old {
			continue
		}
		l := wisdomLine{Problem: problem, M: a.M, Effort: effort.Name, Share: num.Significant(share),
			Schedule: a.Schedule,
			Stage:    a.Stage, Tried: a.Tried, Rival: a.Rival}
		for _, s := range a.Seconds {
			l.Seconds = append(l.Seconds, num.Significant(s))
		}
		data, err := json.Marshal(l)
		if err != nil {
			return err
		}
		w.kept[wisdomKey(problem, a.M)] = l
		out.Write(append(data, '\n'))
	}
	if out.Len() == 0 {
		return nil
	}
	if _, err := w.file.Write(out.Bytes()); err != nil {
		return fmt.Errorf("storing kernel trials: %w", err)
	}
	return w.file.Sync()
}

// Close closes the file. w may be nil.
func (w *Wisdom) Close() error {
	if w == nil {
		return nil
	}
	return w.file.Close()
}
