package profiles

import (
	"strings"

	"github.com/klauspost/cpuid/v2"
)

// matrixExtensions names the AMX features that CPUID reports. They are told to people; kernels are
// gated on what the operating system lets this process use of them.
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

// brandName is the processor's own name, for systems whose /proc is hidden.
func brandName() string { return strings.TrimSpace(cpuid.CPU.BrandName) }
