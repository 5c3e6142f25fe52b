package flags

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/show"
)

// RunMoved runs a subcommand of c in place of a flag of earlier versions that selected what c does.
// It prints one line on stderr that states the subcommand, and passes the flags that c was given to
// it. A flag that the subcommand does not have is an error, except flag and implied ("" for none), a
// flag that the former spelling needed in addition.
func RunMoved(c, sub *cobra.Command, flag, implied string, args ...string) error {
	fmt.Fprintf(show.Stderr(), "sandwich: --%s is now the verb %q\n", flag, sub.CommandPath())
	var err error
	c.Flags().Visit(func(f *pflag.Flag) {
		target := sub.Flags().Lookup(f.Name)
		_, alias := f.Value.(*aliasValue)
		switch {
		case err != nil || alias:
		case target != nil:
			err = copyFlag(sub.Flags(), target, f)
		case f.Name != flag && f.Name != implied:
			err = fmt.Errorf("--%s cannot be combined with --%s; leave one of them out", f.Name, flag)
		}
	})
	if err != nil {
		return exit.Usage(err)
	}
	sub.SetContext(c.Context())
	return sub.RunE(sub, args)
}

// copyFlag sets a flag of fs to the value of another flag.
func copyFlag(fs *pflag.FlagSet, target, from *pflag.Flag) error {
	text := from.Value.String()
	if list, ok := from.Value.(pflag.SliceValue); ok {
		if slice, ok := target.Value.(pflag.SliceValue); ok {
			target.Changed = true
			return slice.Replace(list.GetSlice())
		}
		text = strings.Join(list.GetSlice(), ",")
	}
	if err := fs.Set(target.Name, text); err != nil {
		return fmt.Errorf("--%s %s: give one value", target.Name, show.Clip(text, 40))
	}
	return nil
}
