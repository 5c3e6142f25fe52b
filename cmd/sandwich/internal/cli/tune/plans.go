package tune

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/cli/registry"
	"sandwich/cmd/sandwich/internal/planstore"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans/bundle"
	"sandwich/plans/check"
	"sandwich/plans/hostkey"
	"sandwich/profiles"
	"sandwich/profiles/retention"
	"sandwich/runtime/session"
	"sandwich/tuner/trials"
)

// fleetFlags holds the flags of a job that tunes one of many hosts.
type fleetFlags struct {
	list modelflags.PlanList
	push bool
	sign string

	finder *planstore.Finder // nil without --plans
	key    ed25519.PrivateKey
}

func (f *fleetFlags) add(c *cobra.Command) {
	f.list.AddAccess(c, "folder of plans, or OCI location such as registry.example/plans: if it has a good plan for "+
		"this host and model, nothing is tuned; else an interrupted run is resumed")
	c.Flags().BoolVar(&f.push, "push", false, "push the plan to --plans under a tag of its own")
	c.Flags().StringVar(&f.sign, "sign", "", "PEM file with an ed25519 private key to sign the plan with before --push")
}

// open checks the flags and opens the list of plans.
func (f *fleetFlags) open() (err error) {
	switch {
	case f.list.Location == "" && f.push:
		return exit.Usage(errors.New("--push needs a location; give --plans LOCATION too"))
	case f.sign != "" && !f.push:
		return exit.Usage(errors.New("--sign signs the plan that is pushed; give --push too"))
	case f.list.Location == "":
		return nil
	}
	if f.sign != "" {
		data, err := retention.ReadRegular(f.sign, 1<<16)
		if err == nil {
			f.key, err = bundle.ParsePrivateKey(data)
		}
		if err != nil {
			return exit.Usage(fmt.Errorf("--sign %s: %w", f.sign, err))
		}
	}
	f.finder, err = f.list.Finder()
	return err
}

// done reports whether the list has a good plan for the host and the model, or whether an earlier
// run wrote one at -o, which is then pushed.
func (f *Flags) done(ctx context.Context, w io.Writer, subject *session.Subject, host *profiles.Profile) (bool, error) {
	if f.fleet.finder == nil || f.force {
		return false, nil
	}
	found, err := f.fleet.finder.Lookup(ctx, host, &subject.Shape)
	if err != nil {
		return false, registry.Error(err)
	}
	if found != nil {
		b, _, err := found.Bundle(host)
		if err != nil {
			return false, exit.Plan(err)
		}
		why := f.stale(b, host, subject)
		if why == "" {
			return true, f.printFound(w, found)
		}
		show.Notice(fmt.Sprintf("note: %s is tuned again: %s", found.Where, why))
		return false, nil
	}
	b, err := bundle.Read(f.Out)
	if err != nil || !f.fleet.push || inTheWay(f.Out, host, subject.Shape.Digest()) != "" ||
		f.stale(b, host, subject) != "" {
		return false, nil // tuning reports what is wrong with the plan at -o
	}
	show.Notice(fmt.Sprintf("note: an earlier run wrote %s; nothing is tuned", f.Out))
	return true, f.pushPlan(ctx)
}

// stale returns why a plan should be tuned again with these flags; "" if it should not.
func (f *Flags) stale(b *bundle.Bundle, host *profiles.Profile, subject *session.Subject) string {
	v := check.Verify(b, host, &subject.Shape)
	switch {
	case v.Judgement == check.Retune || v.Judgement == check.Invalid:
		return v.Reasons[0]
	case !b.Plan.Tuned && b.Evidence.Budget < f.Options.Run.Budget.Seconds():
		return fmt.Sprintf("a budget of %g s was too small to tune it", b.Evidence.Budget)
	}
	return ""
}

// tuneOrResume is Tune. A job with --plans continues an interrupted run, and starts over if its
// journal is that of other flags or of another build.
func (f *Flags) tuneOrResume(ctx context.Context, subject *session.Subject, host *profiles.Profile) (*bundle.Bundle,
	string, error) {
	asked := f.resume
	if f.fleet.finder != nil && !asked {
		_, err := os.Stat(trials.JournalPath(f.Out))
		if f.resume = err == nil; f.resume {
			show.Notice("note: continuing the interrupted run of " + trials.JournalPath(f.Out))
		}
	}
	b, path, err := f.Tune(ctx, subject, host)
	if !asked && f.resume && errors.Is(err, trials.ErrJournal) {
		show.Notice(fmt.Sprintf("note: %s is the journal of another run; starting over", trials.JournalPath(f.Out)))
		f.resume = false
		b, path, err = f.Tune(ctx, subject, host)
	}
	return b, path, err
}

// pushPlan signs the plan at -o if there is a key, and pushes it under the tag of its host and
// model.
func (f *Flags) pushPlan(ctx context.Context) error {
	if f.fleet.key != nil {
		if err := bundle.Sign(f.Out, f.fleet.key); err != nil {
			return exit.Plan(err)
		}
	}
	packed, b, err := bundle.Pack(f.Out)
	if err != nil {
		return exit.Plan(err)
	}
	where, err := f.fleet.finder.Store.Push(ctx, hostkey.OfBundle(b).Tag(), packed, b)
	if err != nil {
		return registry.Error(fmt.Errorf("the plan %s was not pushed: %w; run the same command again", f.Out, err))
	}
	show.Notice("pushed as " + where)
	return nil
}

// printFound prints that a plan was found and nothing is tuned.
func (f *Flags) printFound(w io.Writer, found *planstore.Found) error {
	if f.format == "json" {
		return show.JSON(w, struct {
			Found    string `json:"found"`
			Measured string `json:"measured"`
		}{found.Where, found.Created})
	}
	_, err := fmt.Fprintf(w, "%s was measured at %s and fits this host and model; nothing is tuned\n", found.Where,
		found.Created)
	return err
}
