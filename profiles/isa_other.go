//go:build !amd64

package profiles

import (
	"runtime"

	"github.com/klauspost/cpuid/v2"
)

// matrixExtensions returns the scalable vector extensions, for messages.
func matrixExtensions() []string {
	if runtime.GOARCH == "arm64" && cpuid.CPU.Supports(cpuid.SVE) {
		return []string{"sve"}
	}
	return nil
}

// brandName returns the processor's name, for systems that hide /proc.
func brandName() string { return cpuid.CPU.BrandName }
