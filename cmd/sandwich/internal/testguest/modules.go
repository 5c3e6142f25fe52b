package testguest

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// drivers lists the kernel modules of network interfaces and shares, each after those that it
// depends on. Kernels lack some of them, which then are built in or belong to other versions; the
// required ones must exist.
var drivers = []struct {
	name     string
	required bool
}{
	{"virtio_ring", false}, {"virtio", false}, {"virtio_pci_legacy_dev", false}, {"virtio_pci_modern_dev", false},
	{"virtio_pci", true}, {"failover", false}, {"net_failover", false}, {"dimlib", false}, {"virtio_net", true},
	{"fuse", false}, {"virtiofs", true},
}

// findModules returns the files of the drivers of a kernel that are not built in. It looks for them
// in the folder where the package of the kernel has them, relative to the image.
func findModules(kernel string) ([]string, error) {
	version := kernelVersion(kernel)
	folder := filepath.Join(filepath.Dir(kernel), "..", "lib", "modules", version)
	if _, err := os.Stat(folder); version == "" || err != nil {
		return nil, &MissingError{fmt.Sprintf("no modules of the kernel %s in %s", kernel, folder),
			"install or unpack the whole package of the kernel"}
	}
	found := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if name, _, ok := strings.Cut(filepath.Base(path), ".ko"); ok && err == nil {
			found[strings.ReplaceAll(name, "-", "_")] = path
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(folder, "modules.builtin"))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var files []string
	for _, d := range drivers {
		builtIn := slices.ContainsFunc(strings.Fields(string(text)), func(path string) bool {
			return strings.ReplaceAll(filepath.Base(path), "-", "_") == d.name+".ko"
		})
		switch path := found[d.name]; {
		case path != "":
			files = append(files, path)
		case d.required && !builtIn:
			return nil, &MissingError{fmt.Sprintf("the kernel %s has no driver %s", kernel, d.name),
				"use Debian's linux-image-cloud-amd64"}
		}
	}
	return files, nil
}

// kernelVersion returns the version of a kernel image for x86, such as 6.1.0-56-cloud-amd64, by the
// pointer to it in the header of the boot protocol. It returns "" if the image has none.
func kernelVersion(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const pointer, base = 0x20e, 0x200
	var at [2]byte
	if _, err := f.ReadAt(at[:], pointer); err != nil {
		return ""
	}
	text := make([]byte, 256)
	n, _ := f.ReadAt(text, base+int64(binary.LittleEndian.Uint16(at[:])))
	version, _, ok := strings.Cut(string(text[:n]), " ")
	if !ok || strings.ContainsAny(version, "/\x00") {
		return ""
	}
	return version
}
