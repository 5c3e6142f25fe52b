package serve

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/root"
	"sandwich/cmd/sandwich/internal/cli/tune"
	"sandwich/cmd/sandwich/internal/describe"
	"sandwich/cmd/sandwich/internal/planreport"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/check"
	"sandwich/profiles"
	"sandwich/runtime/session"
	"sandwich/tuner"
	"sandwich/tuner/run"
)

// runFlags holds the flags of run.
type runFlags struct {
	serve  serveFlags
	budget time.Duration
}

// NewRun returns the verb run.
func NewRun() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run",
		Short: "Probe this machine, tune a model within a minute, and serve it",
		Long: `Probe this machine, tune the model unless a plan for it and this machine exists, and serve it over the OpenAI-compatible
API. The default model is the embedded one.`,
		Example: `  sandwich run
  sandwich run --model llama.gguf --budget 5m`,
		Args:        flags.ExactArgs(0, ""),
		Annotations: map[string]string{root.ReloadsOnHangUp: "yes"},
	}
	f.serve.session.AddModel(c)
	f.serve.session.AddDevice(c)
	f.serve.session.AddDeviceDispatch(c)
	c.Flags().IntVarP(&f.serve.session.Threads, "threads", "t", 0, "maximum number of PUs to use (default: all "+
		"allowed ones)")
	flags.Duration(c.Flags(), &f.budget, "budget", 40*time.Second, "time to tune; 0 serves under the default plan")
	f.serve.add(c)
	c.RunE = func(c *cobra.Command, _ []string) error { return f.run(c.Context(), c.OutOrStdout()) }
	return c
}

func (f *runFlags) run(ctx context.Context, w io.Writer) error {
	if f.budget != 0 && (f.budget < time.Second || f.budget > 100*time.Hour) {
		return exit.Usage(fmt.Errorf("--budget %s is out of range; give a time from 1s to 100h, or 0 for no tuning",
			f.budget))
	}
	return f.serve.run(ctx, w, func(ctx context.Context) (*session.Session, error) { return f.open(ctx, w) })
}

// open reads the model, tunes it if there is no good plan for it, and chooses the plan.
func (f *runFlags) open(ctx context.Context, w io.Writer) (*session.Session, error) {
	s, err := f.serve.session.Load()
	if err != nil {
		return nil, err
	}
	if err := f.prepare(ctx, w, s); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (f *runFlags) prepare(ctx context.Context, w io.Writer, s *session.Session) error {
	if err := s.CheckTokenizer(); err != nil {
		return exit.Usage(err)
	}
	describe.Head(w, s.Profile)
	fmt.Fprintln(w)
	if f.budget > 0 {
		if err := f.tune(ctx, w, s); err != nil {
			return err
		}
	}
	return f.serve.session.Choose(s)
}

// tune writes a plan for the session's model to the data folder, unless it has a good one.
func (f *runFlags) tune(ctx context.Context, w io.Writer, s *session.Session) error {
	subject := &session.Subject{Name: s.Name, File: s.File, Shape: s.Shape}
	t := tune.Flags{Session: f.serve.session}
	var err error
	if t.Out, err = tune.PlanPath(subject); err != nil {
		show.Notice(err.Error() + "; serving untuned")
		return nil
	}
	if f.hasPlan(filepath.Dir(t.Out), s.Profile, s.Shape) {
		return nil
	}
	if err := t.Settle(s.Profile, subject, false); err != nil {
		return err
	}
	t.Options = tuner.Options{Run: run.Options{Budget: f.budget, Seed: 1, Began: time.Now()}}
	fmt.Fprintf(w, "tuning %s for this machine, %s; later runs use the plan\n", s.Name, f.budget)
	s.Stages.At("measuring the machine", 0)
	if err := t.Probe(ctx, s.Profile); err != nil {
		return err
	}
	s.Stages.At("tuning", 0)
	b, _, err := t.Tune(ctx, subject, s.Profile)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		show.Notice("tuning failed: " + err.Error() + "; serving untuned")
		return nil
	}
	return planreport.Races(w, b)
}

// hasPlan reports whether the data folder holds a plan for this host and model that need not be
// tuned again: a tuned one, or one for which the same budget was too small.
func (f *runFlags) hasPlan(dir string, host *profiles.Profile, shape plans.ModelShape) bool {
	_, b, err := bundle.FindNewest(dir, host.Fingerprint(), shape.Digest())
	if err != nil {
		return false
	}
	v := check.Verify(b, host, &shape).Judgement
	done := b.Plan.Tuned || b.Evidence.Budget >= f.budget.Seconds()
	return done && (v == check.Optimal || v == check.Suboptimal)
}
