package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Set by the Makefile through -ldflags; a plain `go build` falls back to what the toolchain
// recorded.
var version, commit = "dev", ""

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, commit, Go version and platform",
		Args:  exactArgs(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), versionLine())
			return err
		},
	}
}

// versionLine is what the verb version and the flag --version print.
func versionLine() string {
	return fmt.Sprintf("sandwich %s commit %s %s %s/%s",
		version, buildCommit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func buildCommit() string {
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

// programDigest tells builds apart that have one commit and unlike code: the hash of this program's
// file, or the commit where it cannot be read.
func programDigest() string {
	path, err := os.Executable()
	if err != nil {
		return buildCommit()
	}
	f, err := os.Open(path)
	if err != nil {
		return buildCommit()
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return buildCommit()
	}
	return hex.EncodeToString(sum.Sum(nil))
}
