// Package plan has the verbs that show, verify, compare, check and distribute plans.
package plan

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/cli/modelref"
	"sandwich/cmd/sandwich/internal/footprint"
	"sandwich/cmd/sandwich/internal/planreport"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/check"
	"sandwich/runtime/exec"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/session"
)

// NewPlan returns the verb plan.
func NewPlan() *cobra.Command {
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show, verify, compare and distribute plans",
		Long: `A plan is a folder NAME.plan with the specification (plan.yaml), the profile of the host that it was tuned on (host.yaml),
the measurements behind it (evidence.yaml), and the hashes of these files (MANIFEST.yaml). The verbs of plan read plans
and no weights.`,
		Example: `  sandwich plan show llama.plan
  sandwich plan verify llama.plan --model llama.gguf
  sandwich plan diff before.plan after.plan --exit-code`,
		Args: flags.KnownVerb,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newPlanShow(), newPlanExplain(), newPlanVerify(), newPlanDiff(), newPlanCheck(), newPlanPack(),
		newPlanUnpack(), newPlanSign(), newPlanExport(), newPlanPush(), newPlanPull(),
		newPlanIndex())
	return c
}

func newPlanVerify() *cobra.Command {
	var host, modelArg string
	key := planreport.RequiredKey{Flag: "--key"}
	c := &cobra.Command{
		Use:   "verify PLAN",
		Short: "Check whether a plan is sound and fits this host and a model",
		Long: `Check whether a plan is sound and fits: its hashes, this host (or the one of --host), and the model of --model.

The output lists each difference from the host that the plan was made on, and the memory that serving takes by node with
the default --ctx and --parallel of serve. No weights are loaded. If the plan runs on this host, its kernels are built as
at load time, and the build time is printed.

Exit codes: 0 for OPTIMAL and SUBOPTIMAL, 1 for RETUNE, and for INVALID 2 if the plan is damaged, 4 if it is for another
host, instruction set or model.`,
		Example: `  sandwich plan verify llama.plan
  sandwich plan verify llama.plan --host server.yaml --model llama.gguf`,
		Args: flags.ExactArgs(1, "a plan"),
	}
	c.Flags().StringVar(&host, "host", "", "host.yaml to verify against (default: this machine)")
	modelref.Flag(c, &modelArg, "model", "", "", "GGUF file or pulled model to verify against (default: no model)")
	c.Flags().StringVar(&key.Path, "key", "", "PEM file with the public key that must have signed the plan")
	format := flags.Format(c, "text", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		verdict, err := verifyPlan(c.Context(), args[0], host, modelArg, key)
		if err != nil {
			return err
		}
		if *format == "json" {
			if err := show.JSON(c.OutOrStdout(), verdict); err != nil {
				return err
			}
		} else {
			if err := planreport.PrintVerdict(c.OutOrStdout(), verdict); err != nil {
				return err
			}
		}
		if code := verdict.ExitCode(); code != exit.OK {
			return exit.Silent(code)
		}
		return nil
	}
	return c
}

func verifyPlan(ctx context.Context, dir, host, modelPath string, key planreport.RequiredKey) (
	*planreport.Verified, error) {
	source := machine.Flags{Profile: host}
	p, err := source.Read()
	if err != nil {
		return nil, err
	}
	var shape *plans.ModelShape
	if modelPath != "" {
		s, err := ShapeOfFile(modelPath)
		if err != nil {
			return nil, exit.Usage(err)
		}
		shape = &s
	}
	if b, err := bundle.Read(dir); err == nil && len(b.Plan.Placement) > 0 && host == "" {
		p.Devices = machine.ListDevices(ctx)
	}
	verdict, b, err := check.VerifyDir(dir, p, shape)
	if err != nil {
		return nil, exit.Plan(err)
	}
	v := &planreport.Verified{Verdict: verdict}
	if b != nil {
		if err := key.Check(b); err != nil {
			return nil, err
		}
		v.Packed = b.Plan.Model.Packed()
		if v.Memory, err = footprint.Serving(&b.Plan, footprint.Context(&b.Plan), footprint.DefaultParallel,
			host == ""); err != nil {
			return nil, exit.Usage(err)
		}
	}
	if host == "" && verdict.Judgement != check.Invalid {
		v.Kernels, err = buildKernels(&b.Plan)
	}
	return v, err
}

// buildKernels builds the kernels of a plan, as loading it does.
func buildKernels(p *plans.Plan) (*planreport.BuiltKernels, error) {
	began := time.Now()
	if err := exec.BuildPlan(p); err != nil {
		return nil, err
	}
	return &planreport.BuiltKernels{Count: len(p.Kernels()), Seconds: time.Since(began).Seconds()}, nil
}

// ShapeOfFile reads the shape of a GGUF model and closes it.
func ShapeOfFile(path string) (plans.ModelShape, error) {
	f, _, err := session.OpenModel(path)
	if err != nil {
		return plans.ModelShape{}, err
	}
	defer f.Close()
	return modelshape.Of(f)
}
