package counters

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// counter maps an event to its type and config in perf_event_open.
type counter struct {
	event  Event
	kind   uint32
	config uint64
}

// cache returns the config of a cache read event.
func cache(which, result uint64) uint64 {
	return which | unix.PERF_COUNT_HW_CACHE_OP_READ<<8 | result<<16
}

// groups lists events that the kernel schedules together, so that their ratios remain valid if it
// multiplexes the hardware counters.
var groups = [][]counter{
	{
		{Cycles, unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES},
		{Instructions, unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS},
		{BusCycles, unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_BUS_CYCLES},
	},
	{
		{CacheLoads, unix.PERF_TYPE_HW_CACHE, cache(unix.PERF_COUNT_HW_CACHE_LL,
			unix.PERF_COUNT_HW_CACHE_RESULT_ACCESS)},
		{CacheMisses, unix.PERF_TYPE_HW_CACHE, cache(unix.PERF_COUNT_HW_CACHE_LL,
			unix.PERF_COUNT_HW_CACHE_RESULT_MISS)},
	},
	{
		{TLBLoads, unix.PERF_TYPE_HW_CACHE, cache(unix.PERF_COUNT_HW_CACHE_DTLB,
			unix.PERF_COUNT_HW_CACHE_RESULT_ACCESS)},
		{TLBMisses, unix.PERF_TYPE_HW_CACHE, cache(unix.PERF_COUNT_HW_CACHE_DTLB,
			unix.PERF_COUNT_HW_CACHE_RESULT_MISS)},
	},
	{
		{NodeLoads, unix.PERF_TYPE_HW_CACHE, cache(unix.PERF_COUNT_HW_CACHE_NODE,
			unix.PERF_COUNT_HW_CACHE_RESULT_ACCESS)},
		{NodeMisses, unix.PERF_TYPE_HW_CACHE, cache(unix.PERF_COUNT_HW_CACHE_NODE,
			unix.PERF_COUNT_HW_CACHE_RESULT_MISS)},
	},
	{
		{ContextSwitches, unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CONTEXT_SWITCHES},
		{PageFaults, unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_PAGE_FAULTS},
	},
}

// System is the Source that uses the kernel's perf events.
type System struct{}

// Open starts counting for the given threads.
func (System) Open(threads []int) Set {
	s := &perfSet{memory: openMemory(os.DirFS("/"))}
	for _, thread := range threads {
		for _, g := range groups {
			s.groups = append(s.groups, openGroup(thread, g))
		}
	}
	return s
}

// perfSet holds the event groups of all threads and the memory controller counters.
type perfSet struct {
	groups []*group
	memory *memory
}

func (s *perfSet) Read() Counts {
	total := Counts{}
	for _, g := range s.groups {
		g.addTo(&total)
	}
	if len(s.groups) == 0 {
		total = missing(errors.New("no threads to count"))
	}
	s.memory.read(&total)
	return total
}

func (s *perfSet) Close() {
	for _, g := range s.groups {
		g.close()
	}
	s.memory.close()
}

// group is one event group of one thread.
type group struct {
	counters []counter
	files    []int   // -1 for an event that could not be opened; the first open event leads
	missing  []error // why an event could not be opened, nil if it is open
}

// openGroup opens the events of a group for a thread.
func openGroup(thread int, counters []counter) *group {
	g := &group{counters: counters}
	leader := -1
	for _, c := range counters {
		fd, err := openEvent(c.kind, c.config, thread, -1, leader)
		if err == nil && leader < 0 {
			leader = fd
		}
		g.files, g.missing = append(g.files, fd), append(g.missing, err)
	}
	return g
}

// openEvent opens a counter for the user code of a thread on any CPU, or for all code on one CPU if
// thread is -1. For software events it also counts kernel code if permitted. On error, fd is -1.
func openEvent(kind uint32, config uint64, thread, cpu, leader int) (fd int, err error) {
	attr := unix.PerfEventAttr{Type: kind, Config: config,
		Read_format: unix.PERF_FORMAT_GROUP | unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING}
	attr.Size = uint32(unsafe.Sizeof(attr))
	if thread >= 0 && kind != unix.PERF_TYPE_SOFTWARE {
		attr.Bits = unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv // permitted to unprivileged users
	}
	fd, err = unix.PerfEventOpen(&attr, thread, cpu, leader, unix.PERF_FLAG_FD_CLOEXEC)
	if errors.Is(err, unix.EACCES) && kind == unix.PERF_TYPE_SOFTWARE {
		attr.Bits = unix.PerfBitExcludeKernel
		fd, err = unix.PerfEventOpen(&attr, thread, cpu, leader, unix.PERF_FLAG_FD_CLOEXEC)
	}
	if err != nil {
		return -1, reason(err)
	}
	return fd, nil
}

// reason returns an error that explains why an event could not be opened.
func reason(err error) error {
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		level, _ := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
		return fmt.Errorf("not permitted (kernel.perf_event_paranoid is %s); set it to 2 or lower, or grant the "+
			"capability CAP_PERFMON", strings.TrimSpace(string(level)))
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENODEV), errors.Is(err,
		unix.EINVAL):
		if !hasPMU() {
			return errors.New("no hardware counters found (no PMU, as in most virtual machines)")
		}
		return errors.New("the processor does not support this event")
	case errors.Is(err, unix.ENOSYS):
		return errors.New("the kernel does not support perf events")
	case errors.Is(err, unix.EMFILE):
		return errors.New("too many open files; raise ulimit -n")
	}
	return err
}

// hasPMU reports whether the kernel lists a processor PMU, which it names cpu, cpu_core,
// armv8_pmuv3_0 or similar.
func hasPMU() bool {
	entries, _ := os.ReadDir("/sys/bus/event_source/devices")
	for _, e := range entries {
		if e.Name() == "cpu" || strings.HasPrefix(e.Name(), "cpu_") || strings.HasPrefix(e.Name(), "armv") {
			return true
		}
	}
	return false
}

// addTo adds the current counts of the group to total.
func (g *group) addTo(total *Counts) {
	values, err := g.read()
	next := 0
	for i, c := range g.counters {
		v := Value{Missing: g.missing[i]}
		if g.files[i] >= 0 {
			if v.Missing = err; err == nil {
				v.Count = values[next]
			}
			next++
		}
		t := &total[c.event]
		if t.Missing == nil {
			*t = Value{t.Count + v.Count, v.Missing}
		}
	}
}

// read returns the counts of the group's open events, extrapolated to the whole time if the group
// was scheduled only part of it.
func (g *group) read() ([]float64, error) {
	leader := -1
	for _, fd := range g.files {
		if fd >= 0 {
			leader = fd
			break
		}
	}
	if leader < 0 {
		return nil, nil
	}
	var buf [8 * 8]byte
	n, err := unix.Read(leader, buf[:])
	if err != nil {
		return nil, fmt.Errorf("cannot read a counter: %w", err)
	}
	return scaled(buf[:n])
}

// scaled parses perf's group format (number of events, time enabled, time running, counts) and
// returns the counts multiplied by the ratio of time enabled to time running.
func scaled(b []byte) ([]float64, error) {
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(b[8*i:]) }
	if len(b) < 24 || uint64(len(b)/8-3) < word(0) {
		return nil, errors.New("unknown format of perf counter values")
	}
	enabled, running := float64(word(1)), float64(word(2))
	out := make([]float64, word(0))
	if running == 0 {
		if enabled > 0 {
			return nil, errors.New("no free hardware counters; another user, such as the NMI watchdog, occupies them")
		}
		return out, nil
	}
	for i := range out {
		out[i] = float64(word(3+i)) * enabled / running
	}
	return out, nil
}

func (g *group) close() {
	for _, fd := range g.files {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}
