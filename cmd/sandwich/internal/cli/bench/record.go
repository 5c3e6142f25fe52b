package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/build"
	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/profiles/retention"
	"sandwich/tuner/compare"
	"sandwich/tuner/run"
	"sandwich/tuner/trials"
)

// recordFlags holds the flags of bench search for recording grids.
type recordFlags struct {
	dir     string
	weights []string
}

func (f *recordFlags) add(c *cobra.Command) {
	var names []string
	for _, k := range compare.DefaultWeights() {
		names = append(names, k.String())
	}
	c.Flags().StringVar(&f.dir, "record", "", "folder to record the grids of this machine in")
	c.Flags().StringSliceVar(&f.weights, "weights", names, "with --record: weights as NxK:TYPE")
}

// check rejects flags that conflict with --record and sets those that it implies.
func (f *recordFlags) check(c *cobra.Command, o *compare.Options) error {
	if f.dir == "" {
		if c.Flags().Changed("weights") {
			return errors.New("--weights needs --record; name a single weight with --shape and --type")
		}
		return nil
	}
	for _, name := range []string{"shape", "type", "journal"} {
		if c.Flags().Changed(name) {
			return fmt.Errorf("--%s cannot be combined with --record; use --weights", name)
		}
	}
	if !c.Flags().Changed("strategies") {
		o.Strategies = []string{"exhaustive"}
	}
	for _, m := range compare.RecordedRows() {
		if m <= o.MaxM {
			o.HeldOut = append(o.HeldOut, m)
		}
	}
	return nil
}

// keys returns the weights to record.
func (f *recordFlags) keys() (out []plans.WeightKey, err error) {
	for _, w := range f.weights {
		shape, typ, ok := strings.Cut(w, ":")
		if !ok {
			return nil, fmt.Errorf("--weights %s is not a weight; give NxK:TYPE, such as 2048x2048:q8_0", show.Clip(w,
				40))
		}
		k, err := weightKey("--weights", shape, typ)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	if len(out) == 0 {
		return nil, errors.New("--weights is empty; give at least one weight, such as 2048x2048:q8_0")
	}
	return out, nil
}

// record measures the grid of each weight and the results of the searches on it, and writes both to
// the folder.
func (f *recordFlags) record(ctx context.Context, o compare.Options) error {
	keys, err := f.keys()
	if err != nil {
		return exit.Usage(err)
	}
	live, err := machine.Live()
	if err != nil {
		return err
	}
	sf := modelflags.Flags{ISA: o.ISA, Compute: o.Compute, Threads: o.Threads}
	if err := sf.CheckOn(live); err != nil {
		return exit.Usage(err)
	}
	if o.Profile, err = f.host(ctx, live); err != nil {
		return err
	}
	line, done := show.LiveLine()
	defer done()
	o.Run.Build, o.Run.Progress = build.Commit(), func(p run.Progress) { line(p.String()) }
	r := compare.RecordOptions{Options: o, Here: live, Dir: f.dir, Weights: keys}
	r.Recorded = func(name string, rows []compare.Row) error {
		if rows == nil {
			show.Notice(name + " is already recorded")
			return nil
		}
		show.Notice("recorded " + name)
		return f.table(name, rows)
	}
	err = compare.Record(ctx, r)
	if errors.Is(err, compare.ErrGrid) || errors.Is(err, trials.ErrJournal) {
		return exit.Usage(err)
	}
	if err != nil && ctx.Err() == nil {
		err = exit.Model(err)
	}
	return err
}

// host returns the profile in the folder. If there is none, it probes this machine in full and
// writes the profile.
func (f *recordFlags) host(ctx context.Context, live *profiles.Profile) (*profiles.Profile, error) {
	path := filepath.Join(f.dir, compare.HostFile)
	p, err := profiles.Load(path)
	if err == nil && len(p.Ceilings) == 0 {
		err = fmt.Errorf("%s holds no measured rates; write it again with `sandwich probe --measure full -o %s`", path,
			path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return nil, exit.Usage(err)
		}
		return p, nil
	}
	if err := retention.MakeDir(f.dir, 0o755); err != nil {
		return nil, exit.Usage(err)
	}
	measure := machine.MeasureFlag("full")
	if err := measure.Apply(ctx, live, true); err != nil {
		return nil, err
	}
	return live, live.Save(path)
}

// table writes the results of the searches of a grid as CSV.
func (f *recordFlags) table(name string, rows []compare.Row) error {
	return retention.WriteTo(filepath.Join(f.dir, name+".csv"), func(w io.Writer) error {
		return searchReport.Print(w, rows, "csv")
	})
}
