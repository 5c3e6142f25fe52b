package config

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/hint"
	"sandwich/cmd/sandwich/internal/show"
)

// NewConfig returns the command "sandwich config".
func NewConfig() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Print the settings of commands",
		Long: `Every flag of a command is a setting of the same name. A value comes from, in this order: the flag; the environment
variable SANDWICH_NAME, in capitals and with _ for -, such as SANDWICH_API_KEY_FILE; the YAML file that --config or
SANDWICH_CONFIG names; the default. Keys of the file are settings, which hold for all commands that have them, and names
of commands with their settings:

  threads: 8
  serve:
    listen: 0.0.0.0:8080
    allow-host: [box.lan, box.local]

Unknown keys are errors. Unknown environment variables are ignored.`,
		Args: flags.KnownVerb,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newPrint())
	return c
}

func newPrint() *cobra.Command {
	effective := false
	c := &cobra.Command{
		Use:   "print [COMMAND...]",
		Short: "Print the settings of a command as a YAML file",
		Long: `Print the settings of a command (default: serve) as a YAML file for --config, each with its description and its default
in comments. With --effective the values are those that the command would have with the present environment and file, each
with its source; defaults are comments.`,
		Example: `  sandwich config print >sandwich.yaml
  sandwich --config sandwich.yaml config print --effective serve
  SANDWICH_LISTEN=0.0.0.0:80 sandwich config print --effective
  sandwich config print plan check`,
	}
	c.Flags().BoolVar(&effective, "effective", false, "print the values in effect and their sources")
	c.RunE = func(c *cobra.Command, args []string) error {
		of, err := find(c.Root(), args)
		if err != nil {
			return exit.Usage(err)
		}
		if effective {
			f, err := fileOf(c)
			if err != nil {
				return exit.Usage(err)
			}
			if err := apply(of, f); err != nil {
				return exit.Usage(err)
			}
		}
		return write(c.OutOrStdout(), of, effective)
	}
	return c
}

// find returns the command that the names specify; no names: serve.
func find(root *cobra.Command, names []string) (*cobra.Command, error) {
	if len(names) == 0 {
		names = []string{"serve"}
	}
	c := root
	for _, name := range names {
		sub := child(c, name)
		if sub == nil {
			meant := ""
			if near := hint.Nearest(name, commandNames(c)); near != "" {
				meant = fmt.Sprintf("; did you mean %s?", near)
			}
			return nil, fmt.Errorf("unknown command %s%s", show.Clip(name, 40), meant)
		}
		c = sub
	}
	return c, nil
}

// write writes the settings of a command as YAML.
func write(w io.Writer, c *cobra.Command, effective bool) (err error) {
	indent := ""
	print := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, indent+format+"\n", args...)
		}
	}
	for _, name := range path(c) {
		print("%s:", name)
		indent += "  "
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case !isSetting(f):
		case !effective:
			print("# %s", strings.Join(strings.Fields(f.Usage), " "))
			print("#%s: %s\n", f.Name, text(f))
		case sourceOf(f) == fromDefault:
			print("#%s: %s", f.Name, text(f))
		default:
			print("%s: %s # %s", f.Name, text(f), sourceOf(f))
		}
	})
	return err
}

// text returns the value of a flag in YAML.
func text(f *pflag.Flag) string {
	var value any = f.Value.String()
	switch v := f.Value.(type) {
	case pflag.SliceValue:
		value = v.GetSlice()
	default:
		switch f.Value.Type() {
		case "bool", "int", "int64", "uint64", "float32", "float64":
			value = plain(f.Value.String())
		}
	}
	node := &yaml.Node{}
	if err := node.Encode(value); err != nil {
		return `""`
	}
	node.Style |= yaml.FlowStyle
	b, err := yaml.Marshal(node)
	if err != nil {
		return `""`
	}
	return strings.TrimSpace(string(b))
}

// plain is a number or a boolean, which YAML writes without quotes.
type plain string

func (p plain) MarshalYAML() (any, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: string(p)}, nil
}
