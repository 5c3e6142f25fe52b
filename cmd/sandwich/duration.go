package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// durationFlag adds a flag that takes a time with its unit.
func durationFlag(fs *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	fs.Var((*durationValue)(p), name, usage)
}

// durationValue is a time on the command line. A bare number is refused by its unit: seconds would
// be a guess, and --spin 50 is not meant to be one.
type durationValue time.Duration

func (d *durationValue) Set(text string) error {
	t, err := time.ParseDuration(text)
	if err != nil {
		return d.refusal(text)
	}
	*d = durationValue(t)
	return nil
}

// refusal names units of the size of what the flag holds, which is its default.
func (d *durationValue) refusal(text string) error {
	units := [2]string{"s", "m"}
	if *d != 0 && time.Duration(*d) < time.Second {
		units = [2]string{"us", "ms"}
	}
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return fmt.Errorf("give a time, such as 10%s or 10%s", units[0], units[1])
	}
	if len(text) > 20 {
		return errors.New("give a time that is shorter to write")
	}
	return fmt.Errorf("give a unit, such as %s%s or %s%s", text, units[0], text, units[1])
}

func (d *durationValue) String() string { return time.Duration(*d).String() }
func (d *durationValue) Type() string   { return "duration" }
