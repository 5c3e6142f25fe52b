package llm

import (
	"fmt"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/tuner/measure/llm"
)

// testFlags holds the flags that select tests.
type testFlags struct {
	prompt []int // lengths of prompts
	gen    []int // numbers of generated tokens
	depth  []int // positions before either
	batch  int   // sequences that generate concurrently
}

// tests returns the selected tests.
func (f *testFlags) tests() []llm.Test { return llm.Tests(f.prompt, f.gen, f.depth, f.batch) }

// check rejects values out of range.
func (f *testFlags) check() error {
	if err := checkTokens("-p", f.prompt); err != nil {
		return err
	}
	if err := checkTokens("-n", f.gen); err != nil {
		return err
	}
	if err := checkTokens("--depth", f.depth); err != nil {
		return err
	}
	if f.batch < 1 || f.batch > modelflags.MaxParallel {
		return exit.Usage(fmt.Errorf("--batch %d is out of range; give a number from 1 to %d", f.batch,
			modelflags.MaxParallel))
	}
	return nil
}

// checkTokens rejects numbers of tokens out of range. flag names the flag in errors.
func checkTokens(flag string, values []int) error {
	for _, v := range values {
		if v < 0 || v > 1<<20 {
			return exit.Usage(fmt.Errorf("%s %d is out of range; give a number of tokens from 0 to %d", flag, v, 1<<20))
		}
	}
	return nil
}

// checkReps rejects a number of samples out of range.
func checkReps(reps int) error {
	if reps < 1 || reps > 10000 {
		return exit.Usage(fmt.Errorf("--reps %d is out of range; give a number from 1 to 10000", reps))
	}
	return nil
}

// singleFlags holds the flags of the subcommands that measure one plan with one number of threads.
type singleFlags struct {
	session modelflags.Flags
	reps    int
}

// add adds the flags of the model and the plan and --reps.
func (f *singleFlags) add(c *cobra.Command, reps int) {
	f.session.Add(c)
	c.Flags().IntVarP(&f.reps, "reps", "r", reps, "samples per test")
}
