package flags

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/hint"
	"sandwich/cmd/sandwich/internal/show"
)

// Error describes the fault of a flag and suggests the flag that was probably meant.
func Error(c *cobra.Command, err error) error {
	help := fmt.Sprintf("see '%s --help'", c.CommandPath())
	var unknown *pflag.NotExistError
	var bad *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		name, dashes := unknown.GetSpecifiedName(), "--"
		if short := unknown.GetSpecifiedShortnames(); short != "" {
			name, dashes = short, "-"
		}
		err = fmt.Errorf("unknown flag %s%s: %s%s", dashes, show.Clip(name, 40), hint.Remedy(c.Flags(), name), help)
	case errors.As(err, &bad):
		f := bad.GetFlag()
		all := f.Shorthand + bad.GetValue() // -tb 4 reads as -t b
		if text := hint.Remedy(c.Flags(), all); f.Shorthand != "" && text != "" && spelled("-"+all) {
			err = fmt.Errorf("unknown flag -%s: %s%s", show.Clip(all, 40), text, help)
			break
		}
		err = fmt.Errorf("--%s %s: %w (%s)", f.Name, shown(bad.GetValue()), wanted(f, bad.Unwrap()), help)
	default:
		err = fmt.Errorf("%w (%s)", err, help)
	}
	return exit.Usage(err)
}

// Unknown returns an error for a value that a flag does not accept. choices are the values that it
// accepts.
func Unknown(name, value string, choices ...string) error {
	last := len(choices) - 1
	list := strings.Join(choices[:last], ", ")
	if list != "" {
		list += " or "
	}
	return fmt.Errorf("--%s %s is unknown; give %s%s", name, shown(value), list, choices[last])
}

// shown returns the value of a flag for a message: shortened, and with quotes if it is empty.
func shown(value string) string {
	if value = show.Clip(value, 40); value == "" {
		return `""`
	}
	return value
}

// spelled reports whether an argument of the program starts with the text.
func spelled(text string) bool {
	return slices.ContainsFunc(os.Args[1:], func(arg string) bool { return strings.HasPrefix(arg, text) })
}

// wanted names the values that a flag accepts, if the error is only that the value does not parse.
func wanted(f *pflag.Flag, err error) error {
	if number := (*strconv.NumError)(nil); !errors.As(err, &number) {
		return err
	}
	switch t := f.Value.Type(); {
	case t == "bool":
		return errors.New("give true or false")
	case strings.HasPrefix(t, "float"):
		return errors.New("give a number")
	case strings.HasSuffix(t, "Slice"):
		return errors.New("give integers, separated by commas")
	case strings.HasPrefix(t, "uint"):
		return errors.New("give an integer of at least 0")
	}
	return errors.New("give an integer")
}
