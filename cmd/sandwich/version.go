package main

import (
	"fmt"
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
