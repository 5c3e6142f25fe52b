package check_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/plans/check"
	"sandwich/plans/internal/bundletest"
	"sandwich/plans/internal/plantest"
	"sandwich/profiles"
	"sandwich/topotree"
)

func TestVerify(t *testing.T) {
	b := bundletest.New(t)
	for _, c := range []struct {
		name   string
		change func(*topotree.Description, *profiles.Identity)
		want   check.Judgement
		kind   error
		exit   int
		reason string
	}{
		{"nothing", func(*topotree.Description, *profiles.Identity) {}, check.Optimal, nil, 0, ""},
		// unknown before
		{"governor", func(_ *topotree.Description, id *profiles.Identity) { id.Governor = "powersave" },
			check.Optimal, nil, 0, ""},
		// not known when the plan was made
		{"classes of PUs", func(d *topotree.Description, _ *profiles.Identity) {
			d.Measured = []topotree.MeasuredClass{{Name: "fast", CPUs: topotree.CPURange(0, 1)},
				{Name: "slow", CPUs: d.Online.Minus(topotree.CPURange(0, 1))}}
		}, check.Optimal, nil, 0, ""},
		{"an instruction less", func(_ *topotree.Description, id *profiles.Identity) {
			id.ISA = []string{"avx2",
				"avx512"}
		}, check.Invalid, plans.ErrISA, 4, "avx512_vnni"},
		{"an instruction more", func(_ *topotree.Description, id *profiles.Identity) {
			id.ISA = append(id.ISA,
				"avx512_bf16")
		}, check.Retune, nil, 1, "avx512_bf16"},
		{"another CPU", func(_ *topotree.Description, id *profiles.Identity) { id.CPUModel = "Other" }, check.Invalid,
			plans.ErrForeignHost, 4, "Other"},
		{"another architecture", func(_ *topotree.Description, id *profiles.Identity) { id.Arch = "arm64" },
			check.Invalid,
			plans.ErrForeignHost, 4, "arm64"},
		{"another topology", func(d *topotree.Description, _ *profiles.Identity) { d.Levels = d.Levels[:1] },
			check.Invalid,
			plans.ErrForeignHost, 4, "topology"},
		{"a PU less", func(d *topotree.Description, _ *profiles.Identity) { d.Allowed = topotree.CPURange(0, 2) },
			check.Invalid, plans.ErrForeignHost, 4, "PUs 3"},
		{"its node is gone", func(d *topotree.Description, _ *profiles.Identity) { d.Memory[0].ID = 1 }, check.Invalid,
			plans.ErrForeignHost, 4, "NUMA node 0, but this machine has the nodes 1"},
		{"its node is forbidden", func(d *topotree.Description, _ *profiles.Identity) {
			d.Memory, d.Mems = append(d.Memory, topotree.MemoryNode{ID: 1, Bytes: 1 << 30}), topotree.NewCPUSet(1)
		}, check.Invalid, plans.ErrForeignHost, 4,
			"NUMA node 0, but the cpuset of this process allows only the nodes 1"},
		{"a small quota", func(d *topotree.Description, _ *profiles.Identity) { d.QuotaCPUs = 2 }, check.Invalid,
			plans.ErrForeignHost, 4, "quota"},
	} {
		v := check.Verify(b, plantest.Rehost(t, &b.Host, c.change), &b.Plan.Model)
		if v.Judgement != c.want || v.ExitCode() != c.exit || c.kind != nil && !errors.Is(v.Err, c.kind) ||
			!strings.Contains(strings.Join(v.Reasons, "\n"), c.reason) {
			t.Errorf("%s: %s (exit %d) %v, want %s naming %q", c.name, v.Judgement, v.ExitCode(), v.Reasons,
				c.want, c.reason)
		}
		if (len(v.Reasons) == 0) != (v.Judgement == check.Optimal) {
			t.Errorf("%s: %s with the reasons %q", c.name, v.Judgement, v.Reasons)
		}
	}
}

func TestVerifySettingsAndCeilings(t *testing.T) {
	b := bundletest.New(t)
	b.Host.Host.Governor, b.Host.Host.THP = "performance", "always"
	h := plantest.Rehost(t, &b.Host, func(_ *topotree.Description, id *profiles.Identity) { id.Governor = "powersave" })
	if v := check.Verify(b, h, nil); v.Judgement != check.Suboptimal || v.ExitCode() != 0 ||
		!strings.Contains(v.Reasons[0],
			"powersave") {
		t.Errorf("another governor: %+v", v)
	}
	h = plantest.Rehost(t, &b.Host, func(*topotree.Description, *profiles.Identity) {})
	h.Ceilings[0].Median *= 0.5
	if v := check.Verify(b, h, nil); v.Judgement != check.Retune || !strings.Contains(v.Reasons[0], "-50 %") {
		t.Errorf("half the speed: %+v", v)
	}
	h.Ceilings[0].Median = b.Host.Ceilings[0].Median * 1.05
	if v := check.Verify(b, h, nil); v.Judgement != check.Optimal {
		t.Errorf("within the noise: %+v", v)
	}
	h.Ceilings[0].Figure = profiles.Figure{Median: 1, Assumed: true}
	if v := check.Verify(b, h, nil); v.Judgement != check.Optimal {
		t.Errorf("an assumed figure counts as measured: %+v", v)
	}
	b.Plan.Tuned = false
	if v := check.Verify(b, nil, nil); v.Judgement != check.Suboptimal {
		t.Errorf("an untuned plan: %+v", v)
	}
}

func TestCheckModel(t *testing.T) {
	b := bundletest.New(t)
	other := plantest.Llama160M("q8_0")
	other.Hidden, other.Weights[3].N = 1024, 1024
	err := check.Bundle(b, nil, &other)
	if !errors.Is(err, plans.ErrForeignModel) || plans.ExitCode(err) != 4 || !strings.Contains(err.Error(),
		"hidden (1024, not 768)") || !strings.Contains(err.Error(), "weight v") {
		t.Errorf("%v", err)
	}
	renamed := plantest.Llama160M("q8_0")
	renamed.Name = "the same under another name"
	if err := check.Bundle(b, nil, &renamed); err != nil {
		t.Error(err)
	}
	fewer := plantest.Llama160M("q8_0")
	fewer.Weights = fewer.Weights[:8]
	if err := check.Bundle(b, nil, &fewer); !errors.Is(err, plans.ErrForeignModel) {
		t.Errorf("a weight less: %v", err)
	}
}

// A file of the same architecture in other types is refused by what differs, and by the file that
// the plan was made for.
func TestCheckModelOfOtherTypes(t *testing.T) {
	b := bundletest.New(t)
	b.Evidence.Model = "llama-160m-q8_0.gguf"
	other := plantest.Llama160M("q4_0")
	err := check.Bundle(b, nil, &other)
	want := `plan for another model: the plan tuned on a test is for "llama-160m-q8_0.gguf", and this model differs in ` +
		"the type of the weights embed q k v o gate up down head (q4_0, not q8_0)"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if strings.Contains(err.Error(), "llama-160m\"") {
		t.Errorf("it names the model that both are: %v", err)
	}
}

func TestVerifyDir(t *testing.T) {
	b := bundletest.New(t)
	dir := bundletest.Write(t, b)
	v, got, err := check.VerifyDir(dir, &b.Host, &b.Plan.Model)
	if err != nil || got == nil || v.Judgement != check.Optimal {
		t.Errorf("%+v %v", v, err)
	}
	v, _, err = check.VerifyDir(t.TempDir(), &b.Host, nil)
	if err != nil || v.Judgement != check.Invalid || v.ExitCode() != 2 {
		t.Errorf("an empty folder: %+v %v", v, err)
	}
	if _, _, err := check.VerifyDir(dir+"-absent", nil, nil); err == nil {
		t.Error("an absent folder was verified")
	}
	if out, err := json.Marshal(v); err != nil || !strings.HasPrefix(string(out), `{"verdict":"INVALID","reasons":[`) {
		t.Errorf("%s %v", out, err)
	}
}
