package tuner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sandwich/profiles/retention"
	"sandwich/tuner/search"
)

// ErrJournal is wrapped by errors about a journal of another run.
var ErrJournal = errors.New("journal of another run")

// JournalPath returns the path of the journal of a run that writes its plan to out; it is in the
// same folder.
func JournalPath(out string) string {
	return strings.TrimRight(out, string(filepath.Separator)) + ".journal"
}

// RemoveJournal deletes a journal after its plan is written. A missing journal is not an error.
func RemoveJournal(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the journal: %w", err)
	}
	return nil
}

// journalKey is what two runs must have in common for one to continue the other. The tag of a field
// names the flag or the cause in an error.
type journalKey struct {
	Fingerprint string `json:"fingerprint"`
	Build       string `json:"build"`
	Model       string `json:"model"`
	Seed        uint64 `json:"seed"`
	Flags       string `json:"flags"`
}

const (
	journalFormat  = "sandwich tune journal"
	journalVersion = 1
	maxJournalLine = 1 << 20
	maxJournal     = 256 << 20 // maximum bytes; its trials are held in memory
	syncEvery      = time.Second
)

// journalHead is the first line of a journal.
type journalHead struct {
	Format  string     `json:"format"`
	Version int        `json:"version"`
	Key     journalKey `json:"key"`
}

// journalLine is one finished trial.
type journalLine struct {
	Trial   string    `json:"trial"` // everything that determines the measurement, see trialName
	Nth     int       `json:"nth"`   // run index of this trial, starting at 0
	Seconds []float64 `json:"seconds"`
	Stopped bool      `json:"stopped,omitempty"`
	Cost    float64   `json:"cost"` // total wall time in seconds
}

// journal keeps the finished trials of a run on disk, so that a killed run can continue. Every line
// is written when its trial ends and synced about once per second. An incomplete last line is
// ignored.
type journal struct {
	file     *os.File
	finished map[string][]journalLine // trials of the earlier run
	earlier  time.Duration            // duration of the earlier run's trials
	synced   time.Time
}

// openJournal starts a journal at path, or with resume continues the one at path. It rejects a
// journal of another run and names the difference.
func openJournal(path string, key journalKey, resume bool) (*journal, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	f, err := retention.OpenUpdate(path, 0)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &journal{file: f, finished: map[string][]journalLine{}, synced: time.Now()}
	if resume {
		err = j.checkSize()
	} else {
		err = j.startOver()
	}
	if err == nil {
		err = j.load(key)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("journal %s: %w", path, err)
	}
	return j, nil
}

// checkSize rejects a file that is too large for a journal.
func (j *journal) checkSize() error {
	st, err := j.file.Stat()
	if err == nil && st.Size() > maxJournal {
		err = fmt.Errorf("it has more than %d bytes: %w", maxJournal, errNoJournal)
	}
	return err
}

// startOver empties the file if it is a journal and rejects any other file.
func (j *journal) startOver() error {
	const begins = `{"format":"` + journalFormat
	head := make([]byte, len(begins))
	n, err := io.ReadFull(j.file, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	if string(head[:n]) != begins[:n] {
		return errNoJournal
	}
	if err := j.file.Truncate(0); err != nil {
		return err
	}
	_, err = j.file.Seek(0, io.SeekStart)
	return err
}

var errNoJournal = errors.New("it is not a journal of tune; name another file or remove it")

// load reads the existing lines, truncates an incomplete last line, and writes the head of a new
// journal.
func (j *journal) load(key journalKey) error {
	in := bufio.NewReaderSize(j.file, 64<<10)
	head, good, err := readLine(in)
	switch {
	case err == io.EOF: // empty, or killed before the first line was complete
		if err := j.file.Truncate(0); err != nil {
			return err
		}
		if _, err := j.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return j.write(journalHead{journalFormat, journalVersion, key})
	case err != nil:
		return err
	}
	if err := checkHead(head, key); err != nil {
		return err
	}
	for {
		line, n, err := readLine(in)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		var l journalLine
		if json.Unmarshal(line, &l) != nil || len(l.Seconds) == 0 {
			break // incomplete or damaged; the lines after it are discarded
		}
		good += n
		j.finished[l.Trial] = append(j.finished[l.Trial], l)
		j.earlier += time.Duration(l.Cost * float64(time.Second))
	}
	if err := j.file.Truncate(good); err != nil {
		return err
	}
	_, err = j.file.Seek(good, io.SeekStart)
	return err
}

// readLine returns a complete line without its end, and its length including the end. It returns
// io.EOF for an incomplete or missing line.
func readLine(in *bufio.Reader) (line []byte, n int64, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			return bytes.TrimSuffix(line, []byte("\n")), int64(len(line)), nil
		}
		if err != bufio.ErrBufferFull {
			return nil, 0, err
		}
		if len(line) > maxJournalLine {
			return nil, 0, fmt.Errorf("a line is longer than %d bytes: %w", maxJournalLine, errNoJournal)
		}
	}
}

func checkHead(line []byte, want journalKey) error {
	var h journalHead
	if err := json.Unmarshal(line, &h); err != nil || h.Format != journalFormat {
		return errNoJournal
	}
	if h.Version != journalVersion {
		return fmt.Errorf("%w: it has version %d and this build writes %d; start over without --resume, or "+
			"remove it", ErrJournal, h.Version, journalVersion)
	}
	for _, f := range []struct{ what, has, want string }{
		{"host (fingerprint)", h.Key.Fingerprint, want.Fingerprint},
		{"build", h.Key.Build, want.Build},
		{"model shape", h.Key.Model, want.Model},
		{"seed", fmt.Sprint(h.Key.Seed), fmt.Sprint(want.Seed)},
		{"set of flags", h.Key.Flags, want.Flags},
	} {
		if f.has != f.want {
			return fmt.Errorf("%w: it was made with another %s (%.80s, now %.80s); use the same again, or start "+
				"over: without --resume, or with the file removed", ErrJournal, f.what, f.has, f.want)
		}
	}
	return nil
}

func (j *journal) write(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	if time.Since(j.synced) < syncEvery {
		return nil
	}
	j.synced = time.Now()
	return j.file.Sync()
}

func (j *journal) close() error {
	return errors.Join(j.file.Sync(), j.file.Close())
}

// recorder is a search.Timer that answers trials from the journal and records those that it times.
type recorder struct {
	timer    search.Timer
	journal  *journal // nil: no journal
	set      string   // the active PUs, part of the name of a trial
	asked    map[string]int
	replayed time.Duration // cost of the trials answered from the journal: time of the earlier run
	hits     int
}

func newRecorder(t search.Timer, j *journal) *recorder {
	return &recorder{timer: t, journal: j, asked: map[string]int{}}
}

// trialName returns everything that determines what a trial measures.
func (r *recorder) trialName(t search.Trial) string {
	return fmt.Sprintf("pus %s %s %s m %d n %d %s", r.set, t.Key, t.Compute, t.M, t.Columns, t.Schedule)
}

// Time implements search.Timer.
func (r *recorder) Time(t search.Trial) (search.Sample, error) {
	if r.journal == nil {
		return r.timer.Time(t)
	}
	s, _, err := r.once(r.trialName(t), func() (search.Sample, error) { return r.timer.Time(t) })
	return s, err
}

// once returns a trial that an earlier run finished from the journal; otherwise it runs and records
// the trial. It adds the cost of the trial in either run.
func (r *recorder) once(name string, run func() (search.Sample, error)) (s search.Sample, cost float64, err error) {
	nth := r.asked[name]
	r.asked[name]++
	if r.journal != nil {
		for _, l := range r.journal.finished[name] {
			if l.Nth == nth {
				r.replayed += time.Duration(l.Cost * float64(time.Second))
				r.hits++
				return search.Sample{Seconds: l.Seconds, Stopped: l.Stopped}, l.Cost, nil
			}
		}
	}
	began := time.Now()
	if s, err = run(); err != nil {
		return s, 0, err
	}
	cost = time.Since(began).Seconds()
	if r.journal != nil {
		err = r.journal.write(journalLine{Trial: name, Nth: nth, Seconds: s.Seconds, Stopped: s.Stopped, Cost: cost})
	}
	return s, cost, err
}

// forward is once for a forward, which has a single time.
func (r *recorder) forward(name string, run func() (float64, error)) (Timing, error) {
	s, cost, err := r.once(name, func() (search.Sample, error) {
		seconds, err := run()
		return search.Sample{Seconds: []float64{seconds}}, err
	})
	if err != nil {
		return Timing{}, err
	}
	return Timing{Seconds: s.Seconds[0], Cost: cost}, nil
}
