// Package manual has the verb man, which writes manual pages of all commands.
package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/profiles/retention"
)

// NewMan returns the hidden verb man.
func NewMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man FOLDER",
		Short:  "Write manual pages of all commands into a folder",
		Hidden: true,
		Long: `Write a manual page of section 1 for each command into a folder, which is created. Pages have the date of
SOURCE_DATE_EPOCH (seconds since 1970) if it is set, else none, so that equal programs write equal pages.`,
		Example: "  sandwich man /usr/local/share/man/man1",
		Args:    flags.ExactArgs(1, "a folder"),
		RunE: func(c *cobra.Command, args []string) error {
			date, err := sourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
			if err != nil {
				return exit.Usage(err)
			}
			if err := retention.MakeDir(args[0], 0o755); err != nil {
				return exit.Usage(err)
			}
			return write(args[0], c.Root(), date)
		},
	}
}

// sourceDate returns the date of a number of seconds since 1970; "" stays "".
func sourceDate(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return "", fmt.Errorf("SOURCE_DATE_EPOCH=%.40q is not a number of seconds since 1970", text)
	}
	return time.Unix(seconds, 0).UTC().Format(time.DateOnly), nil
}

// write writes the pages of a command and of those below it.
func write(dir string, c *cobra.Command, date string) error {
	if !listed(c) {
		return nil
	}
	c.InitDefaultHelpFlag()
	if err := retention.WriteFile(filepath.Join(dir, pageName(c)+".1"), page(c, date)); err != nil {
		return exit.Usage(err)
	}
	for _, sub := range c.Commands() {
		if err := write(dir, sub, date); err != nil {
			return err
		}
	}
	return nil
}

// listed reports whether a command has a page.
func listed(c *cobra.Command) bool { return !c.Hidden && c.Deprecated == "" && c.Name() != "help" }

// pageName returns the name of a command's page without the section.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }
