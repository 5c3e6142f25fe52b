package profiles

import (
	"strings"

	"github.com/klauspost/cpuid/v2"
)

// matrixExtensions returns the AMX features that CPUID reports, for messages. Kernels depend on
// what the operating system enables for this process.
func matrixExtensions() []string {
	var names []string
	for id, name := range map[cpuid.FeatureID]string{
		cpuid.AMXTILE: "amx_tile", cpuid.AMXINT8: "amx_int8", cpuid.AMXBF16: "amx_bf16", cpuid.AMXFP16: "amx_fp16",
	} {
		if cpuid.CPU.Supports(id) {
			names = append(names, name)
		}
	}
	return names
}

// brandName returns the processor's name, for systems that hide /proc.
func brandName() string { return strings.TrimSpace(cpuid.CPU.BrandName) }
