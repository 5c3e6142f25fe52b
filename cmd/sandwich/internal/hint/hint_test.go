package hint

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestRemedy checks that flags of other programs, abbreviations and misspellings lead to the flag
// that was probably meant, and that dissimilar names lead to none.
func TestRemedy(t *testing.T) {
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	fs.String("listen", "127.0.0.1:8080", "")
	fs.StringArray("device", []string{"cpu"}, "")
	fs.StringSlice("origins", nil, "")
	fs.Int("threads", 0, "")
	fs.Int("parallel", 8, "")
	for name, want := range map[string]string{
		"port": "'--listen 127.0.0.1:8080'", "np": "'--parallel 8'", "thraeds": "'--threads'", "para": "'--parallel 8'",
		"devise": "'--device cpu'", "origin": "'--origins'",
		"n-gpu-layers": "--device places whole phases on a GPU; ", "xyzzy": "", "ctx-size": "", "x": "",
	} {
		if got := Remedy(fs, name); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("--%s: %q, want %q", name, got, want)
		}
	}
}
