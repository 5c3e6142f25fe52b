package testguest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// MissingError lists what must be installed to run a guest.
type MissingError struct{ What, Remedy string }

func (e *MissingError) Error() string { return e.What + ": " + e.Remedy }

// Tools holds the paths of the programs and files of the host that a guest needs.
type Tools struct {
	Qemu, Kernel string
	KVM          bool     // the CPUs of the host can run the guest
	Virtiofsd    string   // "" without shares
	Modules      []string // of the kernel, in the order of loading
}

// Find looks for qemu in PATH and for a kernel in the file named by SANDWICH_GUEST_KERNEL_AMD64 or
// _ARM64, else in /boot. If one of them is missing, or anything else that the machine needs, it
// returns a MissingError.
func Find(m *Machine) (Tools, error) {
	qemu, err := exec.LookPath(m.program())
	if err != nil {
		return Tools{}, &MissingError{m.program() + " is not installed", "install Debian's qemu-system-x86 and " +
			"qemu-system-arm"}
	}
	tools := Tools{Qemu: qemu, KVM: m.KVM && m.Arch == runtime.GOARCH && haveKVM()}
	if tools.Kernel, err = findKernel(m.Arch, "/boot"); err != nil {
		return tools, err
	}
	if m.Tap == "" && len(m.Shares) == 0 {
		return tools, nil
	}
	if tools.Modules, err = findModules(tools.Kernel); err != nil {
		return tools, err
	}
	if len(m.Shares) > 0 {
		tools.Virtiofsd, err = findVirtiofsd()
	}
	return tools, err
}

// haveKVM reports whether this process can use KVM and the CPUs have virtualization. KVM without it
// (PVM) exists inside of virtual machines; it interprets the firmware and hardly gets through it.
func haveKVM() bool {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	f.Close()
	text, err := os.ReadFile("/proc/cpuinfo")
	return err == nil && virtualization.Match(text)
}

// virtualization matches the flag of Intel's or AMD's virtualization in /proc/cpuinfo.
var virtualization = regexp.MustCompile(`(?m)^flags\s*:.*\b(vmx|svm)\b`)

func findKernel(arch, boot string) (string, error) {
	variable := "SANDWICH_GUEST_KERNEL_" + strings.ToUpper(arch)
	if path := os.Getenv(variable); path != "" {
		if got := kernelArch(path); got != arch {
			return "", fmt.Errorf("%s=%s is not a readable Linux kernel for %s", variable, path, arch)
		}
		return path, nil
	}
	all, _ := filepath.Glob(filepath.Join(boot, "vmlinuz*"))
	slices.SortFunc(all, func(a, b string) int { return modified(b) - modified(a) })
	for _, path := range all {
		if kernelArch(path) == arch {
			return path, nil
		}
	}
	return "", &MissingError{"no Linux kernel for " + arch + " in " + boot,
		"install Debian's linux-image-cloud-" + arch + ", or name a kernel in " + variable}
}

// modified returns the modification time of a file in seconds; 0 if it is unknown.
func modified(path string) int {
	st, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return int(st.ModTime().Unix())
}

// kernelArch returns the architecture of a kernel image by its header: the boot protocol of x86,
// or that of arm64 (booting.rst), possibly compressed with gzip. It returns "" for other files.
func kernelArch(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 0x208)
	if _, err := io.ReadFull(f, head); err != nil {
		return ""
	}
	if bytes.HasPrefix(head, []byte("\x1f\x8b")) {
		head = unzipped(f)
	}
	switch {
	case len(head) >= 0x206 && string(head[0x202:0x206]) == "HdrS":
		return "amd64"
	case len(head) >= 0x3c && string(head[0x38:0x3c]) == "ARM\x64":
		return "arm64"
	}
	return ""
}

func unzipped(f io.ReadSeeker) []byte {
	head := make([]byte, 0x40)
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil
	}
	if _, err := io.ReadFull(z, head); err != nil {
		return nil
	}
	return head
}
