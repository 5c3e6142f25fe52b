// Package build identifies the build of this program.
package build

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// Set by the Makefile through -ldflags; a plain `go build` falls back to what the toolchain
// recorded.
var version, commit = "dev", ""

// Version returns the version of the build, "dev" if it was not made by the Makefile.
func Version() string { return version }

// Image returns the name of the container image of a version in releases. Tags have no plus sign.
// No tag is "latest", which Kubernetes pulls although a node has it.
func Image(version string) string { return "sandwich:" + strings.ReplaceAll(version, "+", "-") }

// Line returns the output of the verb version and the flag --version.
func Line() string {
	return fmt.Sprintf("sandwich %s commit %s %s %s/%s",
		version, Commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Commit returns the commit of the build, shortened to 12 digits; "unknown" if it is not recorded.
func Commit() string {
	if commit != "" {
		return commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return "unknown"
}

// ID identifies a build, also among builds of one commit with different code. It returns 16
// hexadecimal digits of the build ID that the linker wrote, or of the hash of the file if there is
// none.
func ID() string {
	path, err := os.Executable()
	if err != nil {
		return Commit()
	}
	id := linkerID(path)
	if id == nil {
		if id, err = os.ReadFile(path); err != nil {
			return Commit()
		}
	}
	sum := sha256.Sum256(id)
	return hex.EncodeToString(sum[:8])
}

// linkerID returns the note in an ELF file that identifies a Go build; nil if there is none.
func linkerID(path string) []byte {
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	note := f.Section(".note.go.buildid")
	if note == nil {
		return nil
	}
	id, err := note.Data()
	if err != nil {
		return nil
	}
	return id
}
