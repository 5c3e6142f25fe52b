package plan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/build"
	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/footprint"
	"sandwich/cmd/sandwich/internal/outfile"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans/bundle"
	"sandwich/plans/export"
	"sandwich/plans/export/replica"
	"sandwich/profiles/retention"
)

// exportFlags are the flags of `plan export`.
type exportFlags struct {
	to         string
	out        string
	replicas   []string
	drainDelay time.Duration
	grace      time.Duration
}

func newPlanExport() *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   "export PLAN --to TARGET",
		Short: "Write the service configuration as the flags, configuration or manifests of another tool",
		Long: `Write the service configuration of a plan in the format of another tool: ` +
			strings.Join(export.Targets(), ", ") + `.
Comments list the properties that the format cannot express.

haproxy and llm-d distribute requests among the servers of --replicas, kubernetes and slurm start servers.
kubernetes writes a Deployment for the host of the plan; the exports of plans for several kinds of hosts work
together. slurm and llm-d are several files, which --output DIR takes.

A server that stops accepts requests for --drain-delay after SIGTERM, until load balancers have noticed, and then has
--grace for running requests. The exported files agree on both; give serve the same where you start it yourself.`,
		Example: `  sandwich plan export llama.plan --to llama-server
  sandwich plan export llama.plan --to systemd >/etc/systemd/system/sandwich.service
  sandwich plan export llama.plan --to haproxy --replicas 10.0.0.1:8080,10.0.0.2:8080 >haproxy.cfg
  sandwich plan export llama.plan --to kubernetes | kubectl apply -f -
  sandwich plan export llama.plan --to slurm --output jobs
  sandwich plan export llama.plan --to llm-d --replicas 10.0.0.1:8080,10.0.0.2:8080 --output /etc/epp`,
		Args: flags.ExactArgs(1, "a plan"),
	}
	fs := c.Flags()
	fs.StringVar(&f.to, "to", "", "target: "+strings.Join(export.Targets(), ", "))
	fs.StringVarP(&f.out, "output", "o", "", "folder to write the files to; it is made if it does not exist "+
		"(default: one file, to stdout)")
	fs.StringSliceVar(&f.replicas, "replicas", nil, "haproxy, llm-d: addresses of the servers, HOST:PORT,...")
	flags.Duration(fs, &f.drainDelay, "drain-delay", 10*time.Second,
		"haproxy, slurm, kubernetes: --drain-delay of the servers")
	flags.Duration(fs, &f.grace, "grace", 30*time.Second, "haproxy, slurm, kubernetes: --grace of the servers")
	c.RunE = func(c *cobra.Command, args []string) error { return f.run(c, args[0]) }
	return c
}

// check returns an error if a flag is out of range or does not apply to the target.
func (f *exportFlags) check() error {
	switch {
	case f.drainDelay < export.MinDrainDelay || f.drainDelay > time.Hour:
		return fmt.Errorf("--drain-delay %s is out of range; give a time from %s to 1h, so that load balancers notice",
			f.drainDelay, export.MinDrainDelay)
	case f.grace < time.Second || f.grace > 24*time.Hour:
		return fmt.Errorf("--grace %s is out of range; give a time from 1s to 24h", f.grace)
	case len(f.replicas) > 0 && slices.Contains(export.Targets(), f.to) && f.to != "haproxy" && f.to != "llm-d":
		return fmt.Errorf("--replicas does not apply to --to %s, only to haproxy and llm-d; leave it out", f.to)
	}
	return nil
}

func (f *exportFlags) run(c *cobra.Command, path string) error {
	if err := f.check(); err != nil {
		return exit.Usage(err)
	}
	replicas, err := replica.Parse(f.replicas)
	if err != nil {
		return exit.Usage(fmt.Errorf("--replicas: %w", err))
	}
	b, err := bundle.Read(path)
	if err != nil {
		return exit.Plan(err)
	}
	memory, err := footprint.Serving(&b.Plan, footprint.Context(&b.Plan), footprint.DefaultParallel, false)
	if err != nil {
		return exit.Usage(err)
	}
	files, err := export.Files(b, f.to, export.Options{Image: build.Image(build.Version()),
		Memory: footprint.Total(memory), Replicas: replicas,
		Capacity: footprint.DefaultParallel + footprint.DefaultQueue, DrainDelay: f.drainDelay, Grace: f.grace})
	if err != nil {
		return exit.Usage(fmt.Errorf("--to: %w", err))
	}
	if f.out != "" {
		return f.write(c.Context(), files)
	}
	if len(files) > 1 {
		return exit.Usage(fmt.Errorf("--to %s writes %d files; name a folder for them with --output", f.to, len(files)))
	}
	_, err = io.WriteString(c.OutOrStdout(), files[0].Text)
	return err
}

// write writes files to the folder --output. It replaces older ones of the same names. Scripts may
// be executed.
func (f *exportFlags) write(ctx context.Context, files []export.File) error {
	if err := retention.MakeDir(f.out, 0o777); err != nil {
		if errors.Is(err, fs.ErrExist) || isFile(f.out) {
			err = fmt.Errorf("--output %s is not a folder", show.Clip(f.out, 200))
		}
		return exit.Usage(err)
	}
	for _, file := range files {
		path := filepath.Join(f.out, file.Name)
		err := outfile.Write(ctx, path, func(w io.Writer) error {
			_, err := io.WriteString(w, file.Text)
			return err
		})
		if err == nil && strings.HasPrefix(file.Text, "#!") {
			err = os.Chmod(path, 0o755)
		}
		if err != nil {
			return err
		}
		show.Notice("wrote " + path)
	}
	return nil
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && !st.IsDir()
}
