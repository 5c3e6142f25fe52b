package profiles

import (
	"bufio"
	"bytes"
	"io/fs"
	"runtime"
	"strconv"
	"strings"
)

// Identity holds the names of a machine and the settings that affect its speed. "" means unknown.
type Identity struct {
	Arch string `yaml:"arch" json:"arch"` // as in GOARCH: amd64, arm64
	// for messages and the fingerprint; never used to select code
	CPUModel  string   `yaml:"cpu_model" json:"cpu_model"`
	ISA       []string `yaml:"isa,flow" json:"isa"` // sorted features from CPUID and XCR0, or HWCAP
	Kernel    string   `yaml:"kernel,omitempty" json:"kernel,omitempty"`
	Microcode string   `yaml:"microcode,omitempty" json:"microcode,omitempty"`
	// kernel.numa_balancing: 0 off, 1 on, 2 tiering
	NUMABalancing string `yaml:"numa_balancing,omitempty" json:"numa_balancing,omitempty"`
	THP           string `yaml:"thp,omitempty" json:"thp,omitempty"` // always, madvise, never
	// cpufreq governors in use, sorted, joined by "+"
	Governor string `yaml:"governor,omitempty" json:"governor,omitempty"`
	// bytes of the first core's L1 data cache
	L1D int64 `yaml:"l1d,omitempty" json:"l1d,omitempty"`
	// topology and cache sizes may be inaccurate
	Hypervisor bool `yaml:"hypervisor,omitempty" json:"hypervisor,omitempty"`
}

// liveIdentity describes the machine that this program runs on. root is its file system,
// os.DirFS("/") outside tests.
func liveIdentity(root fs.FS) Identity {
	id := Identity{Arch: runtime.GOARCH, ISA: liveISA()}
	readSettings(root, &id)
	if id.CPUModel == "" {
		id.CPUModel = brandName()
	}
	return id
}

// savedIdentity describes a machine from its saved sysfs and procfs. The instruction set stays
// empty, since files do not show what the operating system enabled.
func savedIdentity(root fs.FS) Identity {
	var id Identity
	readSettings(root, &id)
	return id
}

// readSettings reads procfs and sysfs under root. Missing files leave fields empty, since
// containers and some kernels hide them.
func readSettings(root fs.FS, id *Identity) {
	cpuinfo(read(root, "proc/cpuinfo"), id)
	id.Kernel = line(read(root, "proc/sys/kernel/osrelease"))
	id.NUMABalancing = line(read(root, "proc/sys/kernel/numa_balancing"))
	id.THP = bracketed(line(read(root, "sys/kernel/mm/transparent_hugepage/enabled")))
	id.Governor = governors(root)
	id.L1D = firstL1D(root)
}

// firstL1D returns the size of the L1 data cache of cpu0 in bytes, 0 if unknown.
func firstL1D(root fs.FS) int64 {
	dirs, _ := fs.Glob(root, "sys/devices/system/cpu/cpu0/cache/index*")
	for _, d := range dirs {
		typ := line(read(root, d+"/type"))
		kib, ok := strings.CutSuffix(line(read(root, d+"/size")), "K")
		if n, err := strconv.Atoi(kib); ok && err == nil && n > 0 && n < 1<<20 && typ == "Data" &&
			line(read(root, d+"/level")) == "1" {
			return int64(n) << 10
		}
	}
	return 0
}

// cpuinfo parses /proc/cpuinfo of x86 and arm64.
func cpuinfo(text []byte, id *Identity) {
	var implementer, part string
	sc := bufio.NewScanner(bytes.NewReader(text))
	sc.Buffer(nil, 1<<16)
	for sc.Scan() {
		key, value, ok := strings.Cut(sc.Text(), ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "model name":
			setOnce(&id.CPUModel, value)
		case "microcode":
			setOnce(&id.Microcode, value)
		case "CPU implementer":
			setOnce(&implementer, value)
		case "CPU part":
			setOnce(&part, value)
		case "flags":
			id.Hypervisor = id.Hypervisor || strings.Contains(" "+value+" ", " hypervisor ")
		}
	}
	if id.CPUModel == "" && part != "" {
		id.CPUModel = armModel(implementer, part)
	}
}

// setOnce sets *dst if it is empty.
func setOnce(dst *string, v string) {
	if *dst == "" {
		*dst = v
	}
}

// armModel returns the name of a common server core, else its implementer and part numbers.
func armModel(implementer, part string) string {
	names := map[string]string{
		"0x41/0xd0c": "Neoverse-N1", "0x41/0xd40": "Neoverse-V1", "0x41/0xd49": "Neoverse-N2",
		"0x41/0xd4f": "Neoverse-V2",
		"0x41/0xd84": "Neoverse-V3", "0x41/0xd8e": "Neoverse-N3", "0x48/0xd01": "Kunpeng-920",
		"0x48/0xd02": "Kunpeng-920-V2",
		"0xc0/0xac3": "Ampere-1", "0xc0/0xac4": "Ampere-1a",
	}
	key := implementer + "/" + part
	if n, ok := names[key]; ok {
		return n
	}
	return "ARM " + key
}

// governors returns the cpufreq governors in use, joined by "+".
func governors(root fs.FS) string {
	policies, _ := fs.Glob(root, "sys/devices/system/cpu/cpufreq/policy*/scaling_governor")
	if len(policies) == 0 {
		policies, _ = fs.Glob(root, "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
	}
	seen := map[string]bool{}
	for _, p := range policies {
		if g := line(read(root, p)); g != "" {
			seen[g] = true
		}
	}
	return strings.Join(sortedKeys(seen), "+")
}

// read returns at most 4 MiB of a file, or nil if it cannot be read.
func read(root fs.FS, name string) []byte {
	f, err := root.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || st.IsDir() {
		return nil
	}
	data, _ := readAtMost(f, 4<<20)
	return data
}

// line returns the first line without surrounding blanks and NUL bytes, which some kernels leave in
// sysfs.
func line(b []byte) string {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		b = b[:i]
	}
	return strings.TrimSpace(strings.Trim(string(b), "\x00"))
}

// bracketed returns the selected word of a text such as "always [madvise] never".
func bracketed(s string) string {
	if _, rest, ok := strings.Cut(s, "["); ok {
		word, _, _ := strings.Cut(rest, "]")
		return word
	}
	return s
}
