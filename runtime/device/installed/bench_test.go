package installed

import "testing"

// BenchmarkHost measures what the default of --device costs on a host without a device.
func BenchmarkHost(b *testing.B) {
	for b.Loop() {
		_, _ = Host{}.CUDA("libcuda.so.1"), Host{}.Vulkan("libvulkan.so.1")
	}
}
