package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"gopkg.in/yaml.v3"

	"sandwich/cmd/sandwich/internal/cli/plan"
	"sandwich/cmd/sandwich/internal/cli/root"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/device"
	"sandwich/runtime/device/rates"
	"sandwich/runtime/device/sim"
	"sandwich/topotree"
	"sandwich/topotree/isomorph"
)

// makeVariant writes another plan made from one: variant FROM TO [NAME=VALUE]... with name, cpu
// (the model of its host), chunk, decode (PUs), place (a phase on a device), tuned, rate (recorded
// tokens per second with 1 % of noise), noise and rounds of those samples, and raced (a device).
func makeVariant(ts *testscript.TestScript, _ bool, args []string) {
	b, err := bundle.Read(ts.MkAbs(args[0]))
	ts.Check(err)
	rate, noise, rounds := 0.0, 0.01, 30
	for _, arg := range args[2:] {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "name":
			b.Plan.Name = value
		case "cpu":
			b.Host.Host.CPUModel = value
			b.Plan.Fingerprint = b.Host.Fingerprint()
		case "created":
			b.Evidence.Created = value
		case "kernel":
			b.Host.Host.Kernel = value
		case "isa": // one feature less, of those that the kernels do not need
			spare := spareFeature(&b.Plan, &b.Host)
			b.Host.Host.ISA = slices.DeleteFunc(b.Host.Host.ISA, func(f string) bool { return f == spare })
			b.Plan.Fingerprint = b.Host.Fingerprint()
		case "chunk":
			b.Plan.Chunk, err = strconv.Atoi(value)
		case "decode":
			var n int // so many of the plan's PUs
			n, err = strconv.Atoi(value)
			b.Plan.Decode.PUs = topotree.NewCPUSet(b.Plan.Decode.PUs.Slice()[:min(n, b.Plan.Decode.PUs.Count())]...)
		case "place": // DEVICE/PHASE, DEVICE/PHASE/optional, DEVICE/PHASE/dense
			parts := append(strings.Split(value, "/"), "")
			one := plans.Placement{Device: parts[0], Phase: parts[1], Ops: []string{"all"}}
			one.Optional = parts[2] == "optional"
			if parts[2] == "dense" {
				one.Ops = []string{"dense"}
			}
			b.Plan.Placement = append(b.Plan.Placement, one)
		case "raced": // on a device, which was slower
			one := sim.New(sim.Config{})
			b.Host.Devices = append(b.Host.Devices, rates.Describe(value, "", one.Info()))
			err = one.Close()
			b.Evidence.Rejected = append(b.Evidence.Rejected, evidence.Rejected{
				Candidate: "prefill, " + plans.DeviceArm(value), Reason: evidence.SlowerReason(3)})
		case "tuned":
			b.Plan.Tuned, err = strconv.ParseBool(value)
		case "rate":
			rate, err = strconv.ParseFloat(value, 64)
		case "noise":
			noise, err = strconv.ParseFloat(value, 64)
		case "rounds":
			rounds, err = strconv.Atoi(value)
		default:
			ts.Fatalf("variant: unknown %q", name)
		}
		ts.Check(err)
	}
	if rate > 0 {
		b.Evidence.Finalists = recordedArms(rate, noise, rounds)
	}
	ts.Check(b.Write(ts.MkAbs(args[1])))
}

// spareFeature returns a CPU feature that the kernels of a plan do not need; "" if they need all.
func spareFeature(p *plans.Plan, host *profiles.Profile) string {
	for _, f := range host.Host.ISA {
		less := *host
		less.Host.ISA = slices.DeleteFunc(slices.Clone(host.Host.ISA), func(g string) bool { return g == f })
		if less.Features() != host.Features() && less.Features().Has(p.Needs()) {
			return f
		}
	}
	return ""
}

// conditions evaluates the conditions of scripts: [several-pus] is true if this process may use
// more than one PU, [equal-pus] if PUs 0 and 1 are among them and equivalent, [spare-isa] if this
// CPU has a feature that the default plan of the embedded model does not need.
func conditions(name string) (bool, error) {
	host, err := profiles.Live()
	if err != nil {
		return false, err
	}
	switch name {
	case "several-pus":
		return host.UsablePUs().Count() > 1, nil
	case "equal-pus":
		tree, pus := host.Machine.Tree, topotree.NewCPUSet(0, 1)
		return pus.In(host.Allowed()) && pus.In(host.Machine.Online) && host.QuotaPUs() == 0 &&
			isomorph.Digest(tree, topotree.NewCPUSet(0)) == isomorph.Digest(tree, topotree.NewCPUSet(1)), nil
	case "vulkan-device":
		return slices.ContainsFunc(device.List(context.Background()), func(f device.Found) bool {
			return f.ID == "vulkan:0" && f.Err == nil
		}), nil
	case "spare-isa":
	default:
		return false, fmt.Errorf("unknown condition %q", name)
	}
	shape, err := plan.ShapeOfFile("")
	if err != nil {
		return false, err
	}
	p, err := heuristic.Default(host, shape, heuristic.Options{})
	if err != nil {
		return false, err
	}
	return spareFeature(p, host) != "", nil
}

// recordedArms returns the arms of a race that the tuned arm won.
func recordedArms(rate, noise float64, rounds int) (out []evidence.Arm) {
	rng := rand.New(rand.NewPCG(uint64(rate), 5))
	for _, test := range []struct{ phase, name string }{{"prefill", "pp512"}, {"decode", "tg batch 1"}} {
		for _, arm := range []string{evidence.ArmDefault, evidence.ArmAgain, evidence.WinnerMark + "tuned"} {
			a := evidence.Arm{Name: test.phase + ", " + arm, Test: test.name, Unit: "tokens/s"}
			for range rounds {
				a.Samples = append(a.Samples, math.Round(rate*math.Exp(noise*rng.NormFloat64())*1e3)/1e3)
			}
			out = append(out, a)
		}
	}
	return out
}

// TestWorkflowsAreYAML checks that the workflow and the action parse, and that they run the script
// that the tests run.
func TestWorkflowsAreYAML(t *testing.T) {
	for name, want := range map[string]string{"workflow.yml": "./.github/actions/check-plans",
		"action.yml": "check-plans.sh"} {
		data, err := os.ReadFile("../../docs/ci/" + name)
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := yaml.Unmarshal(data, &doc); err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDocumentedPlanCommands checks that the commands of docs/ci/README.md are verbs with existing
// flags, and that the page names the script that the tests run.
func TestDocumentedPlanCommands(t *testing.T) {
	data, err := os.ReadFile("../../docs/ci/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(data), "sh docs/ci/check-plans.sh origin/main") != 2 {
		t.Fatal("docs/ci/README.md does not show the script")
	}
	count := 0
	for line := range strings.Lines(string(data)) {
		command, _, _ := strings.Cut(line, "  #")
		args := strings.Fields(command)
		if len(args) == 0 || args[0] != "sandwich" {
			continue
		}
		count++
		c, rest, err := root.New(verbs()...).Find(args[1:])
		if err == nil {
			err = c.ParseFlags(rest)
		}
		if err == nil {
			err = c.ValidateArgs(c.Flags().Args())
		}
		if err != nil || !c.Runnable() {
			t.Errorf("%s: %v", command, err)
		}
	}
	if count < 8 {
		t.Errorf("%d commands", count)
	}
}
