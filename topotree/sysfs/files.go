package sysfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"sandwich/topotree"
)

const (
	cpuDir  = "sys/devices/system/cpu"
	nodeDir = "sys/devices/system/node"

	maxSysfsFile = 1 << 18 // the longest topology files are lists of CPUs
	maxProcFile  = 1 << 23 // /proc/cpuinfo of thousands of CPUs
	maxDirNames  = 1 << 16
)

// ErrNotLinux reports a root without a Linux CPU description.
var ErrNotLinux = errors.New("no sys/devices/system/cpu below this root: use the folder that contains sys/ and " +
	"proc/ of a saved Linux machine")

// sysfs is the state of one reader.
type reader struct {
	fsys     fs.FS
	m        *topotree.Machine
	live     bool            // fsys belongs to the running system, and affinity comes from the kernel
	affinity topotree.CPUSet // PUs on which the process may run; empty if unknown
	modular  bool            // CPU family whose thread siblings are cores
}

// text returns the trimmed content of a file, or "" if it is missing, a dangling link or
// unreadable. The files of sysfs depend on the kernel, so a missing file is never an error here.
func (r *reader) text(path string) string { return r.bounded(path, maxSysfsFile) }

func (r *reader) bounded(path string, limit int64) string {
	f, err := r.fsys.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return ""
	}
	return strings.Trim(string(b), " \t\r\n\x00")
}

// number returns the integer in a file, or missing.
func (r *reader) number(path string, missing int) int {
	n, err := strconv.Atoi(r.text(path))
	if err != nil {
		return missing
	}
	return n
}

func (r *reader) exists(path string) bool {
	_, err := fs.Stat(r.fsys, path)
	return err == nil
}

// names returns the entries of a folder, nil if it cannot be read.
func (r *reader) names(path string) []string {
	f, err := r.fsys.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	dir, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil
	}
	entries, _ := dir.ReadDir(maxDirNames)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// numbered returns the numbers n of the entries named prefix+n of a folder, unordered.
func (r *reader) numbered(path, prefix string) []int {
	var out []int
	for _, name := range r.names(path) {
		digits, ok := strings.CutPrefix(name, prefix)
		if !ok || digits == "" || digits[0] < '0' || digits[0] > '9' {
			continue
		}
		if n, err := strconv.Atoi(digits); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// set reads a CPU set from the first of the named files with content. A file whose name ends in
// "list" contains a list, any other a mask.
func (r *reader) set(dir string, names ...string) (topotree.CPUSet, error) {
	for _, name := range names {
		path := dir + "/" + name
		text := r.text(path)
		if text == "" {
			continue
		}
		parse := topotree.ParseCPUMask
		if strings.HasSuffix(name, "list") {
			parse = topotree.ParseCPUSet
		}
		set, err := parse(text)
		if err != nil {
			return topotree.CPUSet{}, fmt.Errorf("%s: %w", path, err)
		}
		return set, nil
	}
	return topotree.CPUSet{}, nil
}

// sizeBytes parses "32768K", "1M" or a plain number; 0 if invalid.
func sizeBytes(text string) int64 {
	shift := 0
	switch {
	case strings.HasSuffix(text, "K"):
		shift = 10
	case strings.HasSuffix(text, "M"):
		shift = 20
	case strings.HasSuffix(text, "G"):
		shift = 30
	}
	n, err := strconv.ParseInt(strings.TrimRight(text, "KMG"), 10, 64)
	if err != nil || n < 0 || n > 1<<(62-shift) {
		return 0
	}
	return n << shift
}

// note records an assumption of the reader.
func (r *reader) note(format string, args ...any) {
	r.m.Notes = append(r.m.Notes, fmt.Sprintf(format, args...))
}
