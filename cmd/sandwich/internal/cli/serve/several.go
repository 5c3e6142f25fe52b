package serve

import (
	"context"
	"errors"
	"io"

	"sandwich/cmd/sandwich/internal/build"
	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/serve/modelset"
	"sandwich/cmd/sandwich/internal/planpage"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/answer"
	"sandwich/runtime/energy/live"
	"sandwich/runtime/server/metrics"
	"sandwich/runtime/session"
)

// checkModels refuses flags that --models excludes.
func (f *serveFlags) checkModels() error {
	if f.models == "" {
		return nil
	}
	if f.dryRun {
		return errors.New("--dry-run checks one model; give --model and --plan instead of --models")
	}
	return f.session.Exclusive()
}

// startSeveral makes the server ready for the models of --models, and loads those that are loaded
// at the start.
func (f *serveFlags) startSeveral(ctx context.Context, d *listeners, out io.Writer) (stop func(), err error) {
	f.session.Plans.Accept, f.session.Plans.Context = f.key.Check, ctx
	meter := live.Open("", nil)
	describe := planpage.Of
	if f.access.noPage {
		describe = nil
	}
	set, err := modelset.Open(modelset.Options{Path: f.models, Session: f.session, Sizes: f.sizes.Sizes,
		Prefixes: f.prefixes.OpenOrWarn, Accept: f.accept, ReadKeys: readKeys, Notice: show.Notice,
		Stage: d.loading, Describe: describe, Detail: f.access.detail,
		Metrics: func() []metrics.Metric {
			return append(answer.EnergyMetrics(meter), metrics.Metric{Name: "sandwich_info", Value: 1,
				Help:   "1, with what is served as labels.",
				Labels: [][2]string{{"version", build.Version()}, {"commit", build.Commit()}}})
		}})
	if err != nil {
		_ = meter.Close() // its process ends with this one
		return nil, err
	}
	stop = func() {
		_ = meter.Close()
		set.Close()
	}
	if err := set.Start(ctx); err != nil {
		stop()
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			err = errUnloaded
		}
		return nil, err
	}
	d.serveModels(set)
	first := set.First()
	announce(out, d.sockets.URLs, set.Name(), &first, len(d.keys)+len(set.Keys()) > 0)
	d.ready(set.Name(), set.Progress)
	return stop, nil
}

// accept returns an error for a session whose plan --strict or --require-key refuses.
func (f *serveFlags) accept(s *session.Session) error {
	if err := f.strict.refuses(s.Plan, s.Verdict); err != nil || f.key.Path == "" {
		return err
	}
	if s.Bundle == nil {
		return exit.Usage(errors.New("--require-key: there is no signed plan for this host and model; give one " +
			"with --plan or --plans"))
	}
	return f.key.Check(s.Bundle)
}
