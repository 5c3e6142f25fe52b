package energy

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// machine returns the sysfs of a machine; each argument is a path below sys/class and its text.
func machine(files ...string) fstest.MapFS {
	root := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		root["sys/class/"+files[i]] = &fstest.MapFile{Data: []byte(files[i+1] + "\n")}
	}
	return root
}

// zone returns the files of a zone of a range of 1000 J.
func zone(dir, name, microjoules string) []string {
	dir = "powercap/" + dir
	return []string{dir + "/name", name, dir + "/energy_uj", microjoules, dir + "/max_energy_range_uj", "1000000000"}
}

// twoSockets returns two packages with core and memory, the platform, and the same again as mmio.
func twoSockets() fstest.MapFS {
	var files []string
	for _, z := range [][3]string{{"intel-rapl:0", "package-0", "10"}, {"intel-rapl:0:0", "core", "1"},
		{"intel-rapl:0:1", "dram", "2"}, {"intel-rapl:1", "package-1", "20"}, {"intel-rapl:1:0", "dram", "3"},
		{"intel-rapl:2", "psys", "90"}, {"intel-rapl-mmio:0", "package-0", "10"}} {
		files = append(files, zone(z[0], z[1], z[2]+"000000")...)
	}
	return machine(append(files, "powercap/intel-rapl/enabled", "1", "powercap/dtpm/name", "package-9")...)
}

func put(root fstest.MapFS, file, text string) {
	root["sys/class/"+file] = &fstest.MapFile{Data: []byte(text)}
}

// TestTwoSockets checks that packages and memory are added, and parts of packages, the platform and
// a second interface to the same counters are not.
func TestTwoSockets(t *testing.T) {
	root := twoSockets()
	m := newMeter(root, nil)
	before := m.Read()
	put(root, "powercap/intel-rapl:0/energy_uj", "16000000")
	put(root, "powercap/intel-rapl:0:0/energy_uj", "5000000")
	put(root, "powercap/intel-rapl:0:1/energy_uj", "2500000")
	put(root, "powercap/intel-rapl:1/energy_uj", "21000000")
	put(root, "powercap/intel-rapl:2/energy_uj", "190000000")
	used := m.Read().Sub(before)
	if got, err := used.Total(); got != 7.5 || err != nil {
		t.Errorf("total %g J, %v; want 7.5", got, err)
	}
	var names []string
	for _, s := range used {
		names = append(names, s.Name)
	}
	want := "package-0 package-1 package-0/core package-0/dram package-1/dram psys"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("sources %s, want %s", got, want)
	}
	if got, want := used.Summed(), "package-0, package-1, package-0/dram, package-1/dram"; got != want {
		t.Errorf("summed %s, want %s", got, want)
	}
	if got, err := used.Add(used).Total(); got != 15 || err != nil {
		t.Errorf("sum of two intervals %g J, %v; want 15", got, err)
	}
}

// TestMeter checks values of one package's counter after the first one, 10 s apart.
func TestMeter(t *testing.T) {
	for name, c := range map[string]struct {
		first  string
		later  []string
		want   float64
		reason string
	}{
		"advances":          {"1000000", []string{"3000000", "7000000"}, 6, ""},
		"wraps":             {"999000000", []string{"1000000", "2000000"}, 3, ""},
		"wraps twice":       {"900000000", []string{"800000000", "700000000"}, 1800, ""},
		"still":             {"5", []string{"5"}, 0, "did not advance"},
		"words":             {"5", []string{"much"}, 0, "invalid value"},
		"negative":          {"5", []string{"-7"}, 0, "invalid value"},
		"float":             {"5", []string{"1e9"}, 0, "invalid value"},
		"empty":             {"5", []string{""}, 0, "invalid value"},
		"above its range":   {"5", []string{"1000000001"}, 0, "above its range"},
		"above 63 bits":     {"5", []string{"18446744073709551615"}, 0, "invalid value"},
		"long":              {"5", []string{strings.Repeat("9", 100)}, 0, "more than 63 bytes"},
		"invalid at first":  {"?", []string{"1", "5"}, 0, "invalid value"},
		"invalid in middle": {"1", []string{"?", "5"}, 0, "invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			root := machine(zone("intel-rapl:0", "package-0", c.first)...)
			m := newMeter(root, nil)
			now := time.Now()
			for _, v := range c.later {
				put(root, "powercap/intel-rapl:0/energy_uj", v)
				now = now.Add(10 * time.Second)
				m.sample(now)
			}
			got, err := m.reading().Total()
			if got != c.want || (err == nil) != (c.reason == "") ||
				err != nil && !strings.Contains(err.Error(), c.reason) {
				t.Errorf("%g J, %v; want %g J, %q", got, err, c.want, c.reason)
			}
		})
	}
}

// TestReset checks that a counter that starts again at 0 is not taken for one that wrapped around.
func TestReset(t *testing.T) {
	p := &part{wrap: 262143}
	values := []float64{1000, 5}
	p.read = func() (v float64, err error) { v, values = values[0], values[1:]; return v, nil }
	now := time.Now()
	p.sample(now)
	if p.sample(now.Add(time.Second)); !errors.Is(p.source.Err, errReset) {
		t.Errorf("%g J, %v; want %v", p.source.Joules, p.source.Err, errReset)
	}
	p = &part{began: true, last: 7, read: func() (float64, error) { return 3, nil }}
	if p.sample(now); !errors.Is(p.source.Err, errRange) {
		t.Errorf("%v, want %v", p.source.Err, errRange)
	}
}

// denied is a file system that permits no process to read counters.
type denied struct{ fstest.MapFS }

func (d denied) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, "energy_uj") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return d.MapFS.Open(name)
}

// TestNotReadable checks the reasons for missing figures.
func TestNotReadable(t *testing.T) {
	missing := twoSockets()
	delete(missing, "sys/class/powercap/intel-rapl:1/energy_uj")
	folder := machine(zone("intel-rapl:0", "package-0", "1")...)
	folder["sys/class/powercap/intel-rapl:0/energy_uj"] = &fstest.MapFile{Mode: fs.ModeDir}
	for name, c := range map[string]struct {
		root fs.FS
		want string
	}{
		"empty":       {fstest.MapFS{}, "no RAPL zone"},
		"no packages": {machine(zone("intel-rapl:0", "psys", "1")...), "no RAPL zone"},
		"denied":      {denied{twoSockets()}, "package-0: no permission"},
		"one is missing": {missing,
			"package-1: cannot read /sys/class/powercap/intel-rapl:1/energy_uj"},
		"a folder": {folder, "not a regular file"},
	} {
		if _, err := Sources(c.root).Total(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestHostileNames checks names that do not belong into output, and folders that are no zones.
func TestHostileNames(t *testing.T) {
	files := zone("intel-rapl:0", "package-0\x1b[2J", "1")
	files = append(files, zone("intel-rapl:1", "package-1 \"x\"", "1")...)
	files = append(files, zone("intel-rapl:2:0", "package-7", "1")...)
	files = append(files, zone("intel-rapl:x", "package-8", "1")...)
	var names []string
	for _, s := range Sources(machine(files...)) {
		names = append(names, s.Name+"="+string(s.Domain))
	}
	want := "package=package intel-rapl:0=other intel-rapl:1=other intel-rapl:2/package-7=other"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("sources %s, want %s", got, want)
	}
}

// TestMMIO checks that the mmio zones are read where there are no others.
func TestMMIO(t *testing.T) {
	m := newMeter(machine(zone("intel-rapl-mmio:0", "package-0", "5")...), nil)
	if r := m.Read(); len(r) != 1 || r[0].Err != nil {
		t.Errorf("sources %+v, want one package", r)
	}
}

// TestDevices checks the counters and power sensors of GPUs in hwmon.
func TestDevices(t *testing.T) {
	root := machine("hwmon/hwmon0/name", "amdgpu", "hwmon/hwmon0/power1_average", "50000000",
		"hwmon/hwmon1/name", "i915", "hwmon/hwmon1/energy1_input", "1000000", "hwmon/hwmon2/name", "i915_gt0",
		"hwmon/hwmon2/energy1_input", "5", "hwmon/hwmon3/name", "coretemp", "hwmon/hwmon4/name", "nouveau")
	const card = "sys/bus/pci/devices/0000:03:00.0/hwmon/hwmon0/"
	root[card+"name"] = root["sys/class/hwmon/hwmon0/name"]
	root[card+"power1_average"] = &fstest.MapFile{Data: []byte("50000000")}
	var names []string
	for _, s := range Sources(root)[1:] {
		names = append(names, s.Name)
		if wrong := errors.Is(s.Err, errNoSensor) != strings.HasPrefix(s.Name, "nouveau"); wrong {
			t.Errorf("%s: %v", s.Name, s.Err)
		}
	}
	if got, want := strings.Join(names, ", "), "amdgpu (hwmon0), i915 (hwmon1), nouveau (hwmon4)"; got != want {
		t.Errorf("devices %s, want %s", got, want)
	}
	m := newMeter(root, []Accelerator{{Name: "vulkan:0", Address: "0000:03:00.0"}, {Name: "a", Address: "0000:09:00.0"},
		{Name: "b", Address: "../../x"}, {Name: "c", Err: errors.New("simulated")}})
	p := m.parts[4]
	p.sample(p.at.Add(100 * time.Millisecond))
	root[card+"power1_average"] = &fstest.MapFile{Data: []byte("70000000")}
	p.sample(p.at.Add(100 * time.Millisecond))
	if got, want := p.source.Joules, 5+6.0; p.source.Name != "vulkan:0" || math.Abs(got-want) > 1e-9 {
		t.Errorf("%s: %g J, want %g", p.source.Name, got, want)
	}
	for i, want := range []string{"no energy counter", "invalid PCI address", "simulated"} {
		if err := m.parts[1+i].source.Err; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("device %s: %v, want %q", m.parts[1+i].source.Name, err, want)
		}
	}
}

// counter is a driver's counter.
type counter struct {
	joules float64
	closed bool
}

func (c *counter) Joules() (float64, error) { c.joules += 2; return c.joules, nil }
func (c *counter) Close() error             { c.closed = true; return nil }

// TestProbe checks that a single reading closes the counter and keeps its error.
func TestProbe(t *testing.T) {
	c := &counter{}
	if s := Probe(fstest.MapFS{}, Accelerator{Name: "cuda:0", Counter: c}); s.Err != nil || !c.closed {
		t.Errorf("%+v, closed %v", s, c.closed)
	}
	text, err := json.Marshal(Reading{Probe(fstest.MapFS{}, Accelerator{Name: "x", Err: errStill})})
	const want = `[{"source":"x","domain":"device","not_readable":"the energy counters did not advance"}]`
	if string(text) != want || err != nil {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
}

// TestClose checks that a meter ends, closes the counters of devices and adds their energy.
func TestClose(t *testing.T) {
	c := &counter{}
	root := machine(zone("intel-rapl:0", "package-0", "5")...)
	m := Open(root, Accelerator{Name: "cuda:0", Counter: c})
	put(root, "powercap/intel-rapl:0/energy_uj", "1000005")
	if got, err := m.Read().Total(); got != 3 || err != nil {
		t.Errorf("total %g J, %v; want 3", got, err)
	}
	if err := m.Close(); err != nil || !c.closed {
		t.Errorf("closed %v, %v", c.closed, err)
	}
}
