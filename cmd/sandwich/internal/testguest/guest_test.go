package testguest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestArchiveFormat reads an archive back by the format's own rules: magic, thirteen fields of
// eight digits, padding to 4.
func TestArchiveFormat(t *testing.T) {
	var a Archive
	a.Add("/a/b/one", []byte("12345"))
	a.Add("/a/two", nil)
	a.Add("/three", []byte{0, 1})
	data := a.Bytes()
	var got []string
	inodes := map[string]bool{}
	for len(data) > 0 {
		if string(data[:6]) != "070701" {
			t.Fatalf("magic %q after %v", data[:6], got)
		}
		field := func(i int) int {
			v, err := strconv.ParseUint(string(data[6+8*i:14+8*i]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return int(v)
		}
		mode, size, nameSize := field(1), field(6), field(11)
		if inode := string(data[6:14]); inodes[inode] {
			t.Errorf("two files are one inode, which makes them links of one another")
		} else {
			inodes[inode] = true
		}
		name := string(data[110 : 110+nameSize-1])
		at := (110 + nameSize + 3) &^ 3
		got = append(got, fmt.Sprintf("%o %s %q", mode, name, data[at:at+size]))
		data = data[(at+size+3)&^3:]
	}
	want := []string{`40755 a ""`, `40755 a/b ""`, `100755 a/b/one "12345"`, `100755 a/two ""`,
		`100755 three "\x00\x01"`, `0 TRAILER!!! ""`}
	if !slices.Equal(got, want) {
		t.Errorf("entries %q, want %q", got, want)
	}
}

func TestConsole(t *testing.T) {
	line, err := json.Marshal(Result{Name: "probe", Exit: 3, Stdout: "a\n@result b",
		Files: map[string][]byte{"/x": {0, 255}}})
	if err != nil {
		t.Fatal(err)
	}
	var got []Result
	count, tail, err := readConsole(strings.NewReader("Booting\r\n\x1b[c"+Mark+string(line)+"\r\npower down\r\n"),
		func(r Result) { got = append(got, r) })
	if err != nil || count != 1 || len(got) != 1 {
		t.Fatalf("%d results %v: %v", count, got, err)
	}
	if r := got[0]; r.Name != "probe" || r.Exit != 3 || r.Stdout != "a\n@result b" || !bytes.Equal(r.Files["/x"],
		[]byte{0, 255}) {
		t.Errorf("result %+v", r)
	}
	if !slices.Equal(tail, []string{"Booting", "power down"}) {
		t.Errorf("tail %q", tail)
	}
	if _, _, err := readConsole(strings.NewReader(Mark+"{\"Name\":\"pro[ 1.2] oops"), func(Result) {}); err == nil {
		t.Error("half a result was taken")
	}
	failing := io.MultiReader(strings.NewReader("x\n"), errReader{})
	if _, _, err := readConsole(failing, nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a broken console gives %v", err)
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestNumaMaps(t *testing.T) {
	const text = `00400000 default file=/bin/true mapped=9 active=0 N0=4 N3=5 kernelpagesize_kB=4
7f0000000000 prefer:2 anon=3 dirty=3 N2=2 N12=1 kernelpagesize_kB=2048
7ffd00000000 bind:0-1 stack
`
	maps, err := ParseNumaMaps(text)
	if err != nil || len(maps) != 3 {
		t.Fatalf("%v: %v", maps, err)
	}
	if m := maps[0]; m.Start != 0x400000 || m.Policy != "default" || m.File != "/bin/true" || m.Pages[0] != 4 ||
		m.Pages[3] != 5 || m.KiB != 4 {
		t.Errorf("first %+v", m)
	}
	if m := maps[1]; m.Policy != "prefer:2" || m.File != "" || m.Pages[2] != 2 || m.Pages[12] != 1 ||
		len(m.Pages) != 2 || m.KiB != 2048 {
		t.Errorf("second %+v", m)
	}
	for _, bad := range []string{"00400000\n", "zz default\n", "00400000 default N1=x\n", "00400000 default Nx=1\n"} {
		if _, err := ParseNumaMaps(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestKernelIsKnownByItsHeader(t *testing.T) {
	boot := t.TempDir()
	write := func(name string, at int, magic string) string {
		data := make([]byte, 4096)
		copy(data[at:], magic)
		path := filepath.Join(boot, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	x86 := write("vmlinuz-1", 0x202, "HdrS")
	arm := write("vmlinuz-2", 0x38, "ARM\x64")
	none := write("vmlinuz-3", 0, "MZ")
	t.Setenv("SANDWICH_GUEST_KERNEL_AMD64", "")
	t.Setenv("SANDWICH_GUEST_KERNEL_ARM64", "")
	for arch, want := range map[string]string{"amd64": x86, "arm64": arm} {
		if got, err := findKernel(arch, boot); err != nil || got != want {
			t.Errorf("%s: %s, want %s: %v", arch, got, want, err)
		}
	}
	if _, err := findKernel("amd64", t.TempDir()); !errors.As(err, new(*MissingError)) {
		t.Errorf("an empty folder gives %v", err)
	}
	t.Setenv("SANDWICH_GUEST_KERNEL_AMD64", none)
	if _, err := findKernel("amd64", boot); err == nil || errors.As(err, new(*MissingError)) {
		t.Errorf("a named file that is no kernel gives %v, which must not skip the test", err)
	}
}

// TestDrivers finds the drivers of a kernel by the version in its header.
func TestDrivers(t *testing.T) {
	root := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	image := make([]byte, 4096)
	copy(image[0x202:], "HdrS")
	image[0x20e], image[0x20f] = 0x34, 0x02
	copy(image[0x434:], "6.1.0-1 (builder) #1 SMP\x00")
	kernel := write("boot/vmlinuz", image)
	folder := "lib/modules/6.1.0-1/"
	write(folder+"modules.builtin", []byte("kernel/drivers/virtio/virtio.ko\nkernel/drivers/virtio/virtio_pci.ko\n"))
	if _, err := findModules(kernel); !errors.As(err, new(*MissingError)) {
		t.Errorf("a kernel without drivers gives %v", err)
	}
	want := []string{write(folder+"kernel/net/core/failover.ko.xz", nil),
		write(folder+"kernel/drivers/virtio-net.ko", nil),
		write(folder+"kernel/fs/fuse/fuse.ko", nil), write(folder+"kernel/fs/fuse/virtiofs.ko", nil)}
	write(folder+"kernel/net/other.ko", nil)
	if got, err := findModules(kernel); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for name, damage := range map[string]func([]byte){
		"other version": func(b []byte) { copy(b[0x434:], "6.1.0-2") },
		"no version":    func(b []byte) { copy(b[0x434:], strings.Repeat("x", 300)) },
		"a path":        func(b []byte) { copy(b[0x434:], "../../x (") },
		"far pointer":   func(b []byte) { b[0x20f] = 0xff },
	} {
		broken := slices.Clone(image)
		damage(broken)
		if got, err := findModules(write("boot/broken", broken)); !errors.As(err, new(*MissingError)) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got, err := findModules(write("boot/short", image[:0x20f])); !errors.As(err, new(*MissingError)) {
		t.Errorf("a short file: %v, %v", got, err)
	}
}

func TestMachineArguments(t *testing.T) {
	m := Machine{Arch: "arm64", Nodes: 2, CPUsPerNode: 4, Clusters: 2, MiBPerNode: 512,
		Distances: [][]int{{10, 15}, {15, 10}}}
	line := strings.Join(m.arguments(Tools{Kernel: "/k"}, "/i", nil), " ")
	for _, want := range []string{"-m 1024 ", "clusters=4,cores=2", "node,nodeid=1,memdev=m1,cpus=4-7",
		"dist,src=1,dst=0,val=15", "console=ttyAMA0"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not in %s", want, line)
		}
	}
}

// TestMachineArgumentsKVM checks threads of cores, a CPU without some features, the network
// interface and shares.
func TestMachineArgumentsKVM(t *testing.T) {
	m := Machine{Arch: "amd64", Nodes: 1, CPUsPerNode: 4, ThreadsPerCore: 2, MiBPerNode: 512,
		CPU: "-avx512f", Tap: "tap7", Shares: []Share{{Tag: "jobs", Folder: "/a", At: "/b"}}}
	line := strings.Join(m.arguments(Tools{Kernel: "/k", KVM: true}, "/i", []string{"/s"}), " ")
	for _, want := range []string{"-accel kvm ", "-cpu host,arch-capabilities=off,-avx512f ",
		"4,sockets=1,cores=2,threads=2",
		"memory-backend-memfd,share=on,id=m0", ",ifname=tap7 ", "socket,id=jobs,path=/s ", "chardev=jobs,tag=jobs "} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not in %s", want, line)
		}
	}
}
