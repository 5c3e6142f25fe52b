package mem

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// HugeBytes returns the number of bytes of the buffers that are on transparent huge pages, or -1 if
// the system does not report it. It reads /proc/self/smaps, which takes some milliseconds per
// gigabyte, so it should not be called for each scrape of metrics.
func HugeBytes(buffers ...*Buffer) (int64, error) {
	f, err := os.Open("/proc/self/smaps")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	defer f.Close()
	return hugeIn(f, buffers)
}

// hugeIn returns the sum of the huge pages, in bytes, of the mappings that contain buffers. The
// kernel merges adjacent mappings of one kind, so each mapping counts at most the bytes of its
// buffers.
func hugeIn(smaps io.Reader, buffers []*Buffer) (total int64, err error) {
	var inside int64 // bytes of buffers in the current mapping
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		line := lines.Text()
		if lo, hi, ok := mappingOf(line); ok {
			inside = 0
			for _, b := range buffers {
				if b == nil || len(b.data) == 0 {
					continue
				}
				at := uint64(uintptr(b.Pointer()))
				if from, to := max(lo, at), min(hi, at+uint64(len(b.data))); from < to {
					inside += int64(to - from)
				}
			}
			continue
		}
		if rest, ok := strings.CutPrefix(line, "AnonHugePages:"); ok && inside > 0 {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
			if err != nil {
				return -1, fmt.Errorf("/proc/self/smaps: %q is not a number of kB", rest)
			}
			total += min(kb<<10, inside)
		}
	}
	return total, lines.Err()
}

// mappingOf returns the address range in the first line of a mapping: 7f00-7f10 rw-p ...
func mappingOf(line string) (lo, hi uint64, ok bool) {
	span, _, _ := strings.Cut(line, " ")
	from, to, ok := strings.Cut(span, "-")
	if !ok {
		return 0, 0, false
	}
	lo, err1 := strconv.ParseUint(from, 16, 64)
	hi, err2 := strconv.ParseUint(to, 16, 64)
	return lo, hi, err1 == nil && err2 == nil
}
