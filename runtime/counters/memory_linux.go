package counters

import (
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memory holds the read counters of the machine's memory controllers, one file per controller. They
// count the reads of all processes, so opening them requires privileges.
type memory struct {
	files   []int
	missing error
}

// imcEvent identifies the event of a memory controller that counts cache lines read.
type imcEvent struct {
	kind   uint32
	config uint64
	cpu    int // on which the kernel requires the event to be opened
}

// errNoControllers is the reason for missing memory counters if the kernel lists no controllers.
var errNoControllers = errors.New("the kernel lists no memory controller counters")

const deviceDir = "sys/bus/event_source/devices"

// openMemory opens the counters of the controllers listed below sys/ in fsys.
func openMemory(fsys fs.FS) *memory {
	m := &memory{}
	for _, e := range controllers(fsys) {
		fd, err := openEvent(e.kind, e.config, -1, e.cpu, -1)
		if err != nil {
			m.close()
			return &memory{missing: err}
		}
		m.files = append(m.files, fd)
	}
	if len(m.files) == 0 {
		m.missing = errNoControllers
	}
	return m
}

// controllers returns the events that count lines read by the memory controllers of Intel servers.
// Each controller has one event for each CPU of its cpumask, which names one CPU per package.
func controllers(fsys fs.FS) (out []imcEvent) {
	entries, _ := fs.ReadDir(fsys, deviceDir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "uncore_imc") {
			continue
		}
		dir := path.Join(deviceDir, e.Name())
		kind, err := strconv.ParseUint(text(fsys, dir+"/type"), 10, 32)
		config, ok := eventConfig(text(fsys, dir+"/events/cas_count_read"))
		if err != nil || !ok {
			continue
		}
		for cpu := range strings.SplitSeq(text(fsys, dir+"/cpumask"), ",") {
			first, _, _ := strings.Cut(cpu, "-")
			if n, err := strconv.Atoi(first); err == nil {
				out = append(out, imcEvent{uint32(kind), config, n})
			}
		}
	}
	return out
}

// eventConfig parses an event such as "event=0x04,umask=0x03".
func eventConfig(s string) (config uint64, ok bool) {
	for part := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(part, "=")
		v, err := strconv.ParseUint(value, 0, 16)
		if err != nil {
			return 0, false
		}
		switch name {
		case "event":
			config |= v
			ok = true
		case "umask":
			config |= v << 8
		default:
			return 0, false
		}
	}
	return config, ok
}

// text returns the content of a file without surrounding space, or "" if it cannot be read.
func text(fsys fs.FS, name string) string {
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// read sets the two memory events in total.
func (m *memory) read(total *Counts) {
	err := m.missing
	var sum, smallest, largest float64
	for i, fd := range m.files {
		var buf [4 * 8]byte
		n, e := unix.Read(fd, buf[:])
		var values []float64
		if e == nil {
			values, e = scaled(buf[:n])
		}
		if e != nil {
			err = e
			break
		}
		sum += values[0]
		if largest = max(largest, values[0]); i == 0 || values[0] < smallest {
			smallest = values[0]
		}
	}
	total[MemoryReads] = Value{sum, err}
	total[MemoryReadSpread] = Value{largest - smallest, err}
}

func (m *memory) close() {
	for _, fd := range m.files {
		_ = unix.Close(fd)
	}
}
