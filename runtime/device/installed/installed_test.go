package installed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHost checks which files of a host mean that it may have a device.
func TestHost(t *testing.T) {
	const (
		loader = "/usr/lib/libvulkan.so.1"
		icd    = "/usr/share/vulkan/icd.d/"
		cuda   = "/lib64/libcuda.so.1"
	)
	for name, c := range map[string]struct {
		files        []string
		cache        string // contents of the loader's cache
		env          map[string]string
		cuda, vulkan string // in the errors; "": none
	}{
		"nothing": {cuda: "libcuda.so.1 is not installed", vulkan: "libvulkan.so.1 is not installed"},
		"no Vulkan driver": {files: []string{loader, "/dev/dri/renderD128"},
			cuda: "not installed", vulkan: "no Vulkan driver on this host"},
		"lavapipe": {files: []string{loader, icd + "lvp_icd.x86_64.json", "/dev/dri/renderD128"},
			cuda: "not installed", vulkan: "computes on the cores"},
		"SwiftShader by the environment": {files: []string{loader, icd + "radeon_icd.json", "/dev/dri/renderD128"},
			env:  map[string]string{"VK_ICD_FILENAMES": "/opt/vk_swiftshader_icd.json"},
			cuda: "not installed", vulkan: "computes on the cores"},
		"drivers without a GPU": {files: []string{loader, icd + "lvp_icd.json", icd + "intel_icd.json", cuda},
			cuda: "has no NVIDIA device", vulkan: "/dev has no GPU"},
		"an iGPU": {files: []string{loader, icd + "lvp_icd.json", icd + "intel_icd.json", "/dev/dri/renderD128"},
			cuda: "not installed"},
		"a driver of a user": {files: []string{loader, "/home/u/.local/share/vulkan/icd.d/x.json", "/dev/mali0"},
			env: map[string]string{"HOME": "/home/u"}, cuda: "not installed"},
		"an added driver": {files: []string{loader, icd + "lvp_icd.json", "/dev/dri/renderD128"},
			env: map[string]string{"VK_ADD_DRIVER_FILES": "/opt/x.json"}, cuda: "not installed"},
		"NVIDIA": {files: []string{cuda, "/dev/nvidia0", "/dev/nvidiactl"},
			vulkan: "libvulkan.so.1 is not installed"},
		"libraries in the cache of the loader": {files: []string{"/dev/dxg", icd + "dzn_icd.json"},
			cache: "x\x00libcuda.so.1\x00/usr/lib/wsl/lib/libcuda.so.1\x00libvulkan.so.1\x00"},
		"another version in the cache": {files: []string{"/dev/dxg"}, cache: "libcuda.so.10\x00xlibvulkan.so\x00",
			cuda: "not installed", vulkan: "not installed"},
		"a library by LD_LIBRARY_PATH": {files: []string{"/opt/a/libcuda.so.1", "/dev/nvidia0"},
			env: map[string]string{"LD_LIBRARY_PATH": "/opt/b:/opt/a"}, vulkan: "not installed"},
		"a library by path": {files: []string{"/usr/local/nvidia/lib64/libcuda.so.1", "/dev/nvhost-gpu"},
			vulkan: "not installed"},
	} {
		t.Run(name, func(t *testing.T) {
			h := Host{Root: t.TempDir(), Env: func(name string) string { return c.env[name] }}
			write := func(path, text string) {
				path = filepath.Join(h.Root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range c.files {
				write(file, "{}")
			}
			if c.cache != "" {
				write("/etc/ld.so.cache", c.cache)
			}
			for _, x := range []struct {
				err  error
				want string
			}{{h.CUDA("libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"), c.cuda},
				{h.Vulkan("libvulkan.so.1"), c.vulkan}} {
				if (x.err == nil) != (x.want == "") || x.err != nil && !strings.Contains(x.err.Error(), x.want) {
					t.Errorf("%v, want %q", x.err, x.want)
				}
			}
		})
	}
}
