package main

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandwich/cmd/sandwich/internal/cli/root"
	"sandwich/runtime/sched"
)

// completed returns what a shell offers for the last of the words.
func completed(t *testing.T, words ...string) []string {
	t.Helper()
	c := root.New(verbs()...)
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&bytes.Buffer{})
	c.SetArgs(append([]string{"__complete"}, words...))
	if err := c.ExecuteContext(context.Background()); err != nil {
		t.Fatalf("completing %q: %v", words, err)
	}
	var list []string
	for line := range strings.Lines(out.String()) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		list = append(list, word)
	}
	return list
}

// TestCompletion checks offered values of flags and whether file names are offered (":4" and ":36":
// no).
func TestCompletion(t *testing.T) {
	t.Setenv("SANDWICH_MODELS", filepath.Join(t.TempDir(), "models"))
	for _, test := range []struct {
		words []string
		want  []string
	}{
		{[]string{"serve", "--policy", ""}, append(slices.Clone(sched.Policies()), ":36")},
		{[]string{"serve", "--log", ""}, []string{"text", "json", "off", ":36"}},
		{[]string{"run", "--kv="}, []string{"f16", "f32", "q8_0", ":36"}},
		{[]string{"plan", "diff", "--format", ""}, []string{"text", "json", "markdown", ":36"}},
		{[]string{"serve", "--parallel", ""}, []string{":4"}},
		{[]string{"serve", "--api-key-file", ""}, []string{":0"}},
		{[]string{"serve", "--model", ""}, []string{":0"}},
		{[]string{"model", "rm", ""}, []string{":0"}},
	} {
		got := completed(t, test.words...)
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: offered %q, want %q", test.words, got, test.want)
		}
	}
}

// TestCompletedValuesAreAccepted sets every flag with checked values to each value that is offered.
func TestCompletedValuesAreAccepted(t *testing.T) {
	checked := 0
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			complete, ok := c.GetFlagCompletionFunc(f.Name)
			if !ok || f.Name == "model" {
				return
			}
			values, _ := complete(c, nil, "")
			for _, v := range values {
				checked++
				if err := c.Flags().Set(f.Name, v); err != nil {
					t.Errorf("%s --%s %s is offered and refused: %v", c.CommandPath(), f.Name, v, err)
				}
			}
		})
		for _, sub := range c.Commands() {
			each(sub)
		}
	}
	each(root.New(verbs()...))
	if checked == 0 {
		t.Error("no flag offers values")
	}
}
