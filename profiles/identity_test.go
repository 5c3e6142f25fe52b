package profiles

import (
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"sandwich/microkernel"
)

func mapFS(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func TestSavedIdentityX86(t *testing.T) {
	id := savedIdentity(mapFS(map[string]string{
		"proc/cpuinfo": "processor\t: 0\nmodel name\t: Some CPU @ " +
			"2GHz\nmicrocode\t: 0x2b\nflags\t\t: fpu hypervisor avx2\n\nprocessor\t: 1\nmodel name\t: Another\n",
		"proc/sys/kernel/osrelease":                               "6.1.0-test\n",
		"proc/sys/kernel/numa_balancing":                          "1\n\x00",
		"sys/kernel/mm/transparent_hugepage/enabled":              "always [madvise] never\n",
		"sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "powersave\n",
		"sys/devices/system/cpu/cpufreq/policy1/scaling_governor": "performance\n",
	}))
	want := Identity{CPUModel: "Some CPU @ 2GHz", Kernel: "6.1.0-test", Microcode: "0x2b", NUMABalancing: "1",
		THP: "madvise", Governor: "performance+powersave", Hypervisor: true}
	if id.CPUModel != want.CPUModel || id.Kernel != want.Kernel || id.Microcode != want.Microcode ||
		id.NUMABalancing != want.NUMABalancing ||
		id.THP != want.THP || id.Governor != want.Governor || id.Hypervisor != want.Hypervisor || id.ISA != nil {
		t.Errorf("got %+v\nwant %+v", id, want)
	}
}

func TestSavedIdentityARM(t *testing.T) {
	id := savedIdentity(mapFS(map[string]string{"proc/cpuinfo": "processor\t: 0\nCPU implementer\t: 0x48\nCPU " +
		"part\t: 0xd01\n"}))
	if id.CPUModel != "Kunpeng-920" {
		t.Errorf("CPU model %q", id.CPUModel)
	}
	id = savedIdentity(mapFS(map[string]string{"proc/cpuinfo": "CPU implementer\t: 0x99\nCPU part\t: 0x001\n"}))
	if id.CPUModel != "ARM 0x99/0x001" {
		t.Errorf("unknown core is called %q", id.CPUModel)
	}
}

func TestIdentityOfEmptyRoot(t *testing.T) {
	if id := savedIdentity(fstest.MapFS{}); id.CPUModel != "" || id.Kernel != "" {
		t.Errorf("an empty root gave %+v", id)
	}
}

func TestLiveISAAgreesWithTheKernels(t *testing.T) {
	id := liveIdentity(os.DirFS("/"))
	if got := features(id.ISA); got != microkernel.Host() {
		t.Errorf("features of %v are %v, kernels see %v", id.ISA, got, microkernel.Host())
	}
	if !slices.IsSorted(id.ISA) {
		t.Errorf("%v is not sorted", id.ISA)
	}
}
