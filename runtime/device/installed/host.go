package installed

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Host has the file system and the environment of a host. The zero value is this host.
type Host struct {
	Root string              // folder of the file system; "" is /
	Env  func(string) string // nil is os.Getenv
}

func (h Host) env(name string) string {
	if h.Env != nil {
		return h.Env(name)
	}
	return os.Getenv(name)
}

// exists reports whether a file exists, links followed.
func (h Host) exists(path string) bool {
	_, err := os.Stat(filepath.Join("/", h.Root, path))
	return err == nil
}

// loaderFolders are the folders in which glibc or musl look for a library that is neither in
// LD_LIBRARY_PATH nor in the cache of the dynamic loader.
func loaderFolders() []string {
	list := []string{"/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"}
	triplets := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
	if triplet := triplets[runtime.GOARCH]; triplet != "" {
		list = append(list, "/lib/"+triplet, "/usr/lib/"+triplet)
	}
	return list
}

// Library reports whether the dynamic loader would find one of some libraries, by name or by path.
// A library that the loader's cache lists counts as found.
func (h Host) Library(names ...string) bool {
	cache, _ := os.ReadFile(filepath.Join("/", h.Root, "/etc/ld.so.cache")) // absent with musl
	folders := append(filepath.SplitList(h.env("LD_LIBRARY_PATH")), loaderFolders()...)
	for _, name := range names {
		if strings.Contains(name, "/") {
			if h.exists(name) {
				return true
			}
			continue
		}
		if bytes.Contains(cache, append([]byte(name), 0)) ||
			slices.ContainsFunc(folders, func(dir string) bool { return h.exists(filepath.Join(dir, name)) }) {
			return true
		}
	}
	return false
}

// nvidiaFiles and gpuFiles are patterns of the device files of GPUs. WSL has /dev/dxg; drivers of
// Arm, Qualcomm and Imagination outside the kernel have files of their own.
var (
	nvidiaFiles = []string{"/dev/nvidia[0-9]*", "/dev/nvidiactl", "/dev/nvhost*", "/dev/nvgpu*", "/dev/nvmap",
		"/dev/dxg"}
	gpuFiles = append([]string{"/dev/dri/renderD*", "/dev/mali*", "/dev/kgsl*", "/dev/pvr*"}, nvidiaFiles...)
)

// has reports whether a file matches one of some patterns.
func (h Host) has(patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		found, err := filepath.Glob(filepath.Join("/", h.Root, p))
		return err == nil && len(found) > 0
	})
}

// CUDA returns nil if the host may have a CUDA device: one of the libraries, and a device file of
// NVIDIA's kernel driver.
func (h Host) CUDA(libraries ...string) error {
	switch {
	case !h.Library(libraries...):
		return fmt.Errorf("no CUDA driver on this host: %s is not installed", libraries[0])
	case !h.has(nvidiaFiles):
		return fmt.Errorf("%s is installed, but /dev has no NVIDIA device", libraries[0])
	}
	return nil
}
