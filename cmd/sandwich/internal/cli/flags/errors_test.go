package flags

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
)

// TestErrors checks the messages for wrong flags and arguments, and that all have exit code 2.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--chunk="}, `--chunk "": give an integer (see 'verb --help')`},
		{[]string{"--chunk=x"}, `--chunk x: give an integer (see 'verb --help')`},
		{[]string{"--chunks=1"}, `unknown flag --chunks: did you mean '--chunk 1'? see 'verb --help'`},
		{[]string{"--least=5"}, `--least 5: give a unit, such as 5s or 5m (see 'verb --help')`},
		{[]string{"--least=x"}, `--least x: give a time, such as 10s or 10m (see 'verb --help')`},
		{[]string{"--least=9999999h"}, `--least 9999999h: the time is too long; give at most 2562047h (see 'verb --help')`},
		{[]string{"--least=-9999999h"}, `--least -9999999h: the time is too long; give at most 2562047h (see 'verb --help')`},
		{[]string{"--least=1h9"}, `--least 1h9: give a time, such as 10s or 10m (see 'verb --help')`},
		{[]string{"a", "b"}, `unexpected argument "b" (see 'verb --help')`},
	} {
		cmd := &cobra.Command{Use: "verb", Args: AtMostArgs(1), SilenceErrors: true, SilenceUsage: true,
			RunE: func(*cobra.Command, []string) error { return nil }}
		cmd.SetFlagErrorFunc(Error)
		cmd.Flags().Int("chunk", 1, "")
		var minimum time.Duration
		Duration(cmd.Flags(), &minimum, "least", time.Second, "")
		cmd.SetArgs(c.args)
		err := cmd.Execute()
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.args, err, c.want)
		}
		if exit.Code(err) != exit.Input {
			t.Errorf("%q: %v has exit code %d, want %d", c.args, err, exit.Code(err), exit.Input)
		}
	}
}

// TestUnknown checks the message for a value that a flag does not accept, also for an empty and a
// very long one.
func TestUnknown(t *testing.T) {
	for _, c := range []struct {
		value   string
		choices []string
		want    string
	}{
		{"xml", []string{"text", "json", "off"}, "--log xml is unknown; give text, json or off"},
		{"", []string{"text", "json", "off"}, `--log "" is unknown; give text, json or off`},
		{" ", []string{"text", "off"}, `--log "" is unknown; give text or off`},
		{"a", []string{"text"}, "--log a is unknown; give text"},
		{strings.Repeat("a", 1000), []string{"text"}, "--log " + strings.Repeat("a", 37) + "... is unknown; give text"},
	} {
		if err := Unknown("log", c.value, c.choices...); err.Error() != c.want {
			t.Errorf("%.20q: %v, want %s", c.value, err, c.want)
		}
	}
}

// TestAtMostArgs checks that fewer arguments than the maximum are accepted.
func TestAtMostArgs(t *testing.T) {
	for _, args := range [][]string{nil, {"a"}} {
		if err := AtMostArgs(1)(&cobra.Command{}, args); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}
