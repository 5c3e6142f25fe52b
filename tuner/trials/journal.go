// Package trials keeps finished measurements of tuning runs on disk: the journal, by which a killed
// run continues, and the winners of kernel searches, which later runs of the same build and host
// reuse.
package trials

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

// Key identifies the runs that may continue each other. The tag of a field
// names the flag or the cause in an error.
type Key struct {
	Fingerprint string `json:"fingerprint"`
	Build       string `json:"build"`
	Model       string `json:"model"`
	Seed        uint64 `json:"seed"`
	Flags       string `json:"flags"`
}

const (
	format    = "sandwich tune journal"
	version   = 1
	maxLine   = 1 << 20
	maxBytes  = 256 << 20 // maximum bytes; its trials are held in memory
	syncEvery = time.Second
)

// head is the first line of a journal.
type head struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Key     Key    `json:"key"`
}

// line is one finished trial.
type line struct {
	Trial   string    `json:"trial"` // everything that determines the measurement, see Recorder
	Nth     int       `json:"nth"`   // run index of this trial, starting at 0
	Seconds []float64 `json:"seconds"`
	Stopped bool      `json:"stopped,omitempty"`
	Cost    float64   `json:"cost"` // total wall time in seconds
}

// Journal keeps the finished trials of a run on disk, so that a killed run can continue. Every line
// is written when its trial ends and synced about once per second. An incomplete last line is
// ignored.
type Journal struct {
	file     *os.File
	finished map[string][]line // trials of the earlier run
	synced   time.Time
}

// ParseHead returns the key in the first line of a journal of this version.
func ParseHead(text []byte) (Key, error) {
	var h head
	if err := json.Unmarshal(text, &h); err != nil || h.Format != format {
		return Key{}, ErrNoJournal
	}
	if h.Version != version {
		return Key{}, fmt.Errorf("a journal of version %d; this program reads version %d", h.Version, version)
	}
	return h.Key, nil
}

// ParseTrial returns the name and the seconds of the trial of a line, and no seconds if the line is
// incomplete.
func ParseTrial(text []byte) (name string, seconds []float64) {
	var l line
	if json.Unmarshal(text, &l) != nil {
		return "", nil
	}
	return l.Trial, l.Seconds
}

// OpenJournal starts a journal at path, or with resume continues the one at path. It rejects a
// journal of another run and names the difference.
func OpenJournal(path string, key Key, resume bool) (*Journal, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	f, err := retention.OpenUpdate(path, 0)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &Journal{file: f, finished: map[string][]line{}, synced: time.Now()}
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
func (j *Journal) checkSize() error {
	st, err := j.file.Stat()
	if err == nil && st.Size() > maxBytes {
		err = fmt.Errorf("it has more than %d bytes: %w", maxBytes, ErrNoJournal)
	}
	return err
}

// startOver empties the file if it is a journal and rejects any other file.
func (j *Journal) startOver() error {
	const begins = `{"format":"` + format
	first := make([]byte, len(begins))
	n, err := io.ReadFull(j.file, first)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	if string(first[:n]) != begins[:n] {
		return ErrNoJournal
	}
	if err := j.file.Truncate(0); err != nil {
		return err
	}
	_, err = j.file.Seek(0, io.SeekStart)
	return err
}

// ErrNoJournal is wrapped by errors about a file that is not a journal.
var ErrNoJournal = errors.New("it is not a journal of tune; name another file or remove it")

// load reads the existing lines, truncates an incomplete last line, and writes the head of a new
// journal.
func (j *Journal) load(key Key) error {
	in := bufio.NewReaderSize(j.file, 64<<10)
	first, good, err := readLine(in)
	switch {
	case err == io.EOF: // empty, or killed before the first line was complete
		if err := j.file.Truncate(0); err != nil {
			return err
		}
		if _, err := j.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return j.write(head{format, version, key})
	case err != nil:
		return err
	}
	if err := CheckHead(first, key); err != nil {
		return err
	}
	for {
		text, n, err := readLine(in)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		var l line
		if json.Unmarshal(text, &l) != nil || len(l.Seconds) == 0 {
			break // incomplete or damaged; the lines after it are discarded
		}
		good += n
		j.finished[l.Trial] = append(j.finished[l.Trial], l)
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
		if len(line) > maxLine {
			return nil, 0, fmt.Errorf("a line is longer than %d bytes: %w", maxLine, ErrNoJournal)
		}
	}
}

// CheckHead returns an error that wraps ErrJournal if the first line of a journal has another key.
func CheckHead(text []byte, want Key) error {
	var h head
	if err := json.Unmarshal(text, &h); err != nil || h.Format != format {
		return ErrNoJournal
	}
	if h.Version != version {
		return fmt.Errorf("%w: it has version %d and this build writes %d; start over without --resume, or "+
			"remove it", ErrJournal, h.Version, version)
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

func (j *Journal) write(v any) error {
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

// Close syncs and closes the file.
func (j *Journal) Close() error {
	return errors.Join(j.file.Sync(), j.file.Close())
}
