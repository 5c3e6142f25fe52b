//go:build !amd64

package profiles

import (
	"runtime"

	"github.com/klauspost/cpuid/v2"
)

// matrixExtensions names the matrix and scalable vector extensions that are reported.
func matrixExtensions() []string {
	if runtime.GOARCH == "arm64" && cpuid.CPU.Supports(cpuid.SVE) {
		return []string{"sve"}
	}
	return nil
}

// brandName is the processor's own name, for systems whose /proc is hidden.
func brandName() string { return cpuid.CPU.BrandName }
