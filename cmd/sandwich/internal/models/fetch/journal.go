package fetch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"

	"sandwich/cmd/sandwich/internal/models/disk"
)

const journalVersion = 1

// header is the first line of a journal. It identifies the file on the server.
type header struct {
	Version   int    `json:"version"`
	Label     string `json:"label,omitempty"`
	Size      int64  `json:"size"`
	SHA256    string `json:"sha256,omitempty"`
	Validator string `json:"validator,omitempty"`
	Chunk     int64  `json:"chunk"`
}

// same reports whether two headers identify the same bytes: by checksum, else by validator.
func (h header) same(o header) bool {
	if h.Version != o.Version || h.Size != o.Size || h.Chunk != o.Chunk || h.SHA256 != o.SHA256 {
		return false
	}
	return h.SHA256 != "" || h.Validator != "" && h.Validator == o.Validator
}

// chunks returns the number of chunks of the file.
func (h header) chunks() int { return int((h.Size + h.Chunk - 1) / h.Chunk) }

// length returns the number of bytes of a chunk.
func (h header) length(chunk int) int64 { return min(h.Chunk, h.Size-int64(chunk)*h.Chunk) }

// journal is the file that lists the chunks that are stored: a header in JSON, then the number of a
// chunk in each line. A chunk is listed after its bytes were written to the disk. A line that an
// interruption cut off is ignored.
type journal struct {
	header
	mu     sync.Mutex
	file   *os.File
	stored []bool
	taken  []bool // by a worker of this process
}

// openJournal opens the journal of an earlier run of the same download, if its file exists, or
// removes that file and starts a new journal.
func openJournal(base string, want header) (j *journal, resumed bool, err error) {
	if want.Size > maxSize {
		return nil, false, fmt.Errorf("%w: the size of %d bytes is out of range", ErrContent, want.Size)
	}
	j = &journal{header: want, stored: make([]bool, want.chunks()), taken: make([]bool, want.chunks())}
	if j.file, err = os.OpenFile(journalPath(base), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, false, err
	}
	if st, statErr := os.Lstat(partPath(base)); statErr == nil && st.Mode().IsRegular() && st.Size() == want.Size {
		resumed, err = j.load()
	}
	if err == nil && !resumed {
		// In this order: the old file may be linked elsewhere and must not be continued.
		if err = os.Remove(partPath(base)); err == nil || errors.Is(err, os.ErrNotExist) {
			err = j.start()
		}
	}
	if err != nil {
		j.file.Close()
		return nil, false, err
	}
	return j, resumed, nil
}

// maxSize limits the size of a file in bytes, so that the list of its chunks fits in memory.
const maxSize = 1 << 44

// start writes the header of a new journal.
func (j *journal) start() error {
	if err := j.file.Truncate(0); err != nil {
		return err
	}
	line, err := json.Marshal(j.header)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(line, '\n'))
	return err
}

// load reads the stored chunks. It returns false if the journal is of another file or has no valid
// header.
func (j *journal) load() (bool, error) {
	r := bufio.NewReader(j.file)
	line, err := r.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	var h header
	if errors.Is(err, io.EOF) || json.Unmarshal(line, &h) != nil || !h.same(j.header) {
		return false, nil
	}
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if len(line) > 0 { // make the line invalid, also if it is the first digits of a number
				_, err = j.file.Write([]byte("-\n"))
				return true, err
			}
			return true, nil
		}
		if err != nil {
			return false, err
		}
		n, err := strconv.Atoi(string(bytes.TrimSpace(line)))
		if err == nil && n >= 0 && n < len(j.stored) {
			j.stored[n], j.taken[n] = true, true
		}
	}
}

// bytes returns the number of stored bytes.
func (j *journal) bytes() (sum int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, ok := range j.stored {
		if ok {
			sum += j.length(i)
		}
	}
	return sum
}

// take reserves the first run of at most limit chunks that are not reserved. n is 0 if there are
// none.
func (j *journal) take(limit int) (first, n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for first < len(j.taken) && j.taken[first] {
		first++
	}
	for n < limit && first+n < len(j.taken) && !j.taken[first+n] {
		j.taken[first+n] = true
		n++
	}
	return first, n
}

// store lists a chunk as stored.
func (j *journal) store(chunk int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := fmt.Fprintf(j.file, "%d\n", chunk); err != nil {
		return err
	}
	j.stored[chunk] = true
	return nil
}

func (j *journal) close() { _ = j.file.Close() } // lines were written before

// Unfinished describes an unfinished download.
type Unfinished struct {
	Label string // of [File]
	Size  int64  // of the whole file
	Used  int64  // bytes on the disk
}

// Inspect describes the unfinished download to base. It returns an error that wraps
// [os.ErrNotExist] if there is none.
func Inspect(base string) (Unfinished, error) {
	st, err := os.Stat(partPath(base))
	if err != nil {
		return Unfinished{}, err
	}
	u := Unfinished{Used: disk.Allocated(st), Size: st.Size()}
	f, err := os.Open(journalPath(base))
	if err != nil {
		return u, nil // a download without ranges has no journal
	}
	defer f.Close()
	var h header
	if line, err := bufio.NewReader(f).ReadBytes('\n'); err == nil && json.Unmarshal(line, &h) == nil {
		u.Label = h.Label
	}
	return u, nil
}
