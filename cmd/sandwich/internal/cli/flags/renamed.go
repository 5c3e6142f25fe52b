package flags

import (
	"fmt"

	"github.com/spf13/pflag"

	"sandwich/cmd/sandwich/internal/show"
)

// Renamed adds a hidden alias for a flag under its former name. Its first use prints one line
// on stderr that states the new name.
func Renamed(fs *pflag.FlagSet, former, now string) {
	target := fs.Lookup(now)
	note := fmt.Sprintf("sandwich: --%s is now called --%s", former, now)
	fs.AddFlag(&pflag.Flag{Name: former, Hidden: true, NoOptDefVal: target.NoOptDefVal, DefValue: target.DefValue,
		Value: &aliasValue{Value: target.Value, note: note, set: func(text string) error { return fs.Set(now, text) }}})
}

// Ignored adds a hidden flag of earlier versions that has no effect. Its first use prints one
// line on stderr with the reason.
func Ignored(fs *pflag.FlagSet, name, why string) {
	var text string
	fs.StringVar(&text, name, "", "")
	f := fs.Lookup(name)
	f.Hidden = true
	f.Value = &aliasValue{Value: f.Value, note: fmt.Sprintf("sandwich: --%s has no effect: %s", name, why),
		set: func(string) error { return nil }}
}

// aliasValue prints a note when it is first set and passes the value to another flag.
type aliasValue struct {
	pflag.Value
	note string
	set  func(text string) error
	said bool
}

func (v *aliasValue) Set(text string) error {
	if !v.said {
		v.said = true
		fmt.Fprintln(show.Stderr(), v.note)
	}
	return v.set(text)
}
