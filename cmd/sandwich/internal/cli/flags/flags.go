// Package flags has the types of flags and the checks of arguments that verbs share.
package flags

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/show"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Format adds --format, whose default is the first choice, and returns its value.
func Format(c *cobra.Command, choices ...string) *string {
	f := &formatValue{choices[0], choices}
	c.Flags().Var(f, "format", "output format: "+strings.Join(choices, ", "))
	return &f.format
}

// formatValue is a pflag.Value that accepts only its choices.
type formatValue struct {
	format  string
	choices []string
}

func (f *formatValue) Set(format string) error {
	if !slices.Contains(f.choices, format) {
		return fmt.Errorf("unknown format: use %s", strings.Join(f.choices, ", "))
	}
	f.format = format
	return nil
}

func (f *formatValue) String() string { return f.format }
func (f *formatValue) Type() string   { return "string" }

// Choices returns the accepted values for the completion in shells.
func (f *formatValue) Choices() []string { return f.choices }

// Duration adds a flag whose value is a duration with a unit. Help texts do not show a default of
// 0.
func Duration(fs *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	f := fs.VarPF((*durationValue)(p), name, "", usage)
	if value == 0 {
		f.DefValue = "0" // pflag recognizes 0s in its own type only
	}
}

// durationValue is a duration on the command line. It rejects a bare number, since the unit would
// be a guess.
type durationValue time.Duration

func (d *durationValue) Set(text string) error {
	t, err := time.ParseDuration(text)
	if err != nil {
		return d.refusal(text)
	}
	*d = durationValue(t)
	return nil
}

var digits = regexp.MustCompile("[0-9]+")

// refusal suggests units that match the size of the default.
func (d *durationValue) refusal(text string) error {
	units := [2]string{"s", "m"}
	if *d != 0 && time.Duration(*d) < time.Second {
		units = [2]string{"us", "ms"}
	}
	if _, err := time.ParseDuration(digits.ReplaceAllString(text, "1")); err == nil {
		return fmt.Errorf("the time is too long; give at most %dh", math.MaxInt64/int64(time.Hour))
	}
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return fmt.Errorf("give a time, such as 10%s or 10%s", units[0], units[1])
	}
	if len(text) > 20 {
		return errors.New("the value is too long; give a duration such as 10s")
	}
	return fmt.Errorf("give a unit, such as %s%s or %s%s", text, units[0], text, units[1])
}

func (d *durationValue) String() string { return time.Duration(*d).String() }
func (d *durationValue) Type() string   { return "duration" }

// ExactArgs is cobra.ExactArgs with a message that names the missing argument, and exit code 2.
func ExactArgs(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == n:
			return nil
		case len(args) > n:
			return exit.Usage(fmt.Errorf("unexpected argument %q (see '%s --help')", args[n], c.CommandPath()))
		}
		return exit.Usage(fmt.Errorf("%s needs %s (see '%s --help')", c.CommandPath(), what, c.CommandPath()))
	}
}

// AtMostArgs is cobra.MaximumNArgs with a message that names the first argument too many, and exit
// code 2.
func AtMostArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		return ExactArgs(min(n, len(args)), "")(c, args)
	}
}

// SomeArgs requires at least one argument.
func SomeArgs(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return ExactArgs(1, what)(c, args)
	}
}

// KnownVerb rejects an unknown verb and names the verb that was probably meant.
func KnownVerb(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	meant := ""
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		meant = fmt.Sprintf(" did you mean '%s %s'?", c.CommandPath(), near[0])
	}
	return exit.Usage(fmt.Errorf("unknown verb %q:%s see '%s --help'", show.Clip(args[0], 40), meant,
		c.CommandPath()))
}
