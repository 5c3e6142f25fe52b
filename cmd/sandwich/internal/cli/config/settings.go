// Package config sets flags that the command line does not give: from environment variables
// SANDWICH_*, else from a YAML file. Every flag of a command is a setting of the same name, so that
// the flags are the only table of settings.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/show"
)

// fileFlag is the flag with the path of the YAML file. It cannot be a setting itself.
const fileFlag = "config"

// AddFlag adds --config to the root command.
func AddFlag(root *cobra.Command) {
	root.PersistentFlags().String(fileFlag, "", "YAML file with settings; SANDWICH_CONFIG names it too "+
		"(see sandwich config --help)")
}

// Sources of the value of a setting.
const (
	fromFlag        = "flag"
	fromEnvironment = "environment"
	fromFile        = "file"
	fromDefault     = "default"
)

// Apply sets the flags of a command that were not given from the environment and the file. It
// returns an error with exit code 2 for an unreadable file, an unknown key or an invalid value.
func Apply(c *cobra.Command) error {
	f, err := fileOf(c)
	if err != nil {
		return exit.Usage(err)
	}
	if err := apply(c, f); err != nil {
		return exit.Usage(err)
	}
	return nil
}

// Path returns the value of --config, or of SANDWICH_CONFIG if the flag is not given.
func Path(c *cobra.Command) (string, error) {
	path, err := c.Flags().GetString(fileFlag)
	return cmp.Or(path, os.Getenv(variable(fileFlag))), err
}

// fileOf reads the file of Path. It returns nil if no file is named.
func fileOf(c *cobra.Command) (*file, error) {
	path, err := Path(c)
	if err != nil || path == "" {
		return nil, err
	}
	return readFile(path, c.Root())
}

// apply sets the flags of a command and records the source of each.
func apply(c *cobra.Command, f *file) (err error) {
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		if err != nil || !isSetting(flag) {
			return
		}
		source, at := fromFlag, ""
		if !flag.Changed {
			source, at, err = set(c, flag, f)
		}
		if flag.Annotations == nil {
			flag.Annotations = map[string][]string{}
		}
		flag.Annotations[sourceNote] = []string{source, at}
	})
	return err
}

// sourceNote is the annotation of a flag with its source, and the name of the variable or the line
// of the file.
const sourceNote = "source"

// sourceOf returns the source of a flag's value after apply.
func sourceOf(f *pflag.Flag) string {
	if note := f.Annotations[sourceNote]; len(note) == 2 {
		return note[0]
	}
	return fromDefault
}

// Places returns where the flags that an error message names are set, unless on the command line,
// as the end of a sentence: "; --ctx is set in sandwich.yaml:3". It returns "" if there is nothing
// to add.
func Places(c *cobra.Command, message string) (text string) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		source := sourceOf(f)
		if source != fromEnvironment && source != fromFile {
			return
		}
		at := f.Annotations[sourceNote][1]
		named := regexp.MustCompile(`--` + regexp.QuoteMeta(f.Name) + `([^a-z0-9-]|$)`)
		if named.MatchString(message) && !strings.Contains(message, at) {
			text += fmt.Sprintf("; --%s is set in %s", f.Name, at)
		}
	})
	return text
}

// set sets a flag from the environment or the file and returns the source of its value, with the
// name of the variable or the line of the file.
func set(c *cobra.Command, flag *pflag.Flag, f *file) (source, at string, err error) {
	if text, ok := os.LookupEnv(variable(flag.Name)); ok {
		if err := c.Flags().Set(flag.Name, text); err != nil {
			return "", "", fmt.Errorf("%s=%s: %w", variable(flag.Name), show.Clip(text, 60), cause(err, flag))
		}
		return fromEnvironment, variable(flag.Name), nil
	}
	values, at := f.lookup(c, flag.Name)
	if at == "" {
		return fromDefault, "", nil
	}
	if _, many := flag.Value.(pflag.SliceValue); !many && len(values) != 1 {
		return "", "", fmt.Errorf("%s: %s takes one value, not a list", at, flag.Name)
	}
	for _, v := range values {
		if err := c.Flags().Set(flag.Name, v); err != nil {
			return "", "", fmt.Errorf("%s: %s: %s: %w", at, flag.Name, show.Clip(v, 60), cause(err, flag))
		}
	}
	return fromFile, at, nil
}

// cause removes the prefix of pflag, which names a flag that was not given, and says how numbers
// and truth values are written.
func cause(err error, flag *pflag.Flag) error {
	var invalid *pflag.InvalidValueError
	var number *strconv.NumError
	kind := flag.Value.Type()
	switch {
	case errors.As(err, &number) && kind == "bool":
		return errors.New("write true or false")
	case errors.As(err, &number) && strings.HasPrefix(kind, "float"):
		return errors.New("write a number")
	case errors.As(err, &number):
		return errors.New("write a whole number in range")
	case errors.As(err, &invalid):
		return invalid.Unwrap()
	}
	return err
}

// variable returns the environment variable of a setting: SANDWICH_API_KEY_FILE for api-key-file.
func variable(setting string) string {
	return "SANDWICH_" + strings.ToUpper(strings.ReplaceAll(setting, "-", "_"))
}

// isSetting reports whether a flag can be set from the environment or a file.
func isSetting(f *pflag.Flag) bool {
	return f.Name != fileFlag && f.Name != "help" && f.Name != "version" && f.Deprecated == "" && !f.Hidden
}

// Reread returns the value that a setting of a running command has after its file is read again.
// The command line and the environment still come first. It returns an error if any part of the
// file is not valid.
func Reread(c *cobra.Command, setting string) (string, error) {
	flag := c.Flags().Lookup(setting)
	f, err := fileOf(c)
	if err != nil {
		return "", err
	}
	switch source := sourceOf(flag); {
	case source == fromFlag, source == fromEnvironment:
		return flag.Value.String(), nil
	default:
		if values, at := f.lookup(c, setting); at != "" && len(values) == 1 {
			return values[0], nil
		}
		return flag.DefValue, nil
	}
}
