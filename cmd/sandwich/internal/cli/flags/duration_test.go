package flags

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestZeroDuration checks that help texts do not show a default of 0, that they show others, and
// that the default can be parsed, as config does.
func TestZeroDuration(t *testing.T) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	var none, some time.Duration
	Duration(fs, &none, "none", 0, "without a limit")
	Duration(fs, &some, "some", time.Second, "with a limit")
	if text := fs.FlagUsages(); strings.Contains(text, "default 0") || !strings.Contains(text, "(default 1s)") {
		t.Errorf("the help text is\n%s", text)
	}
	for _, name := range []string{"none", "some"} {
		if f := fs.Lookup(name); f.Value.Set(f.DefValue) != nil {
			t.Errorf("--%s does not accept its default %q", name, f.DefValue)
		}
	}
}
