package plans

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/topotree"
)

// rehost is the host of testBundle after a change of its description or identity.
func rehost(t *testing.T, b *Bundle, change func(*topotree.Description, *profiles.Identity)) *profiles.Profile {
	t.Helper()
	d, id := b.Host.Machine.Describe(), b.Host.Host
	id.ISA = slices.Clone(id.ISA)
	change(&d, &id)
	m, err := d.Machine()
	if err != nil {
		t.Fatal(err)
	}
	h := profiles.New(m, id)
	h.Ceilings = slices.Clone(b.Host.Ceilings)
	return h
}

func TestVerify(t *testing.T) {
	b := testBundle(t)
	for _, c := range []struct {
		name   string
		change func(*topotree.Description, *profiles.Identity)
		want   Judgement
		kind   error
		exit   int
		reason string
	}{
		{"nothing", func(*topotree.Description, *profiles.Identity) {}, Optimal, nil, 0, ""},
		// unknown before
		{"governor", func(_ *topotree.Description, id *profiles.Identity) { id.Governor = "powersave" },
			Optimal, nil, 0, ""},
		{"an instruction less", func(_ *topotree.Description, id *profiles.Identity) {
			id.ISA = []string{"avx2",
				"avx512"}
		}, Invalid, ErrISA, 4, "avx512_vnni"},
		{"an instruction more", func(_ *topotree.Description, id *profiles.Identity) {
			id.ISA = append(id.ISA,
				"avx512_bf16")
		}, Retune, nil, 1, "avx512_bf16"},
		{"another CPU", func(_ *topotree.Description, id *profiles.Identity) { id.CPUModel = "Other" }, Invalid,
			ErrForeignHost, 4, "Other"},
		{"another architecture", func(_ *topotree.Description, id *profiles.Identity) { id.Arch = "arm64" }, Invalid,
			ErrForeignHost, 4, "arm64"},
		{"another topology", func(d *topotree.Description, _ *profiles.Identity) { d.Levels = d.Levels[:1] }, Invalid,
			ErrForeignHost, 4, "topology"},
		{"a PU less", func(d *topotree.Description, _ *profiles.Identity) { d.Allowed = topotree.CPURange(0, 2) },
			Invalid, ErrForeignHost, 4, "PUs 3"},
		{"its node is gone", func(d *topotree.Description, _ *profiles.Identity) { d.Memory[0].ID = 1 }, Invalid,
			ErrForeignHost, 4, "NUMA node 0, but this machine has the nodes 1"},
		{"its node is forbidden", func(d *topotree.Description, _ *profiles.Identity) {
			d.Memory, d.Mems = append(d.Memory, topotree.MemoryNode{ID: 1, Bytes: 1 << 30}), topotree.NewCPUSet(1)
		}, Invalid, ErrForeignHost, 4, "NUMA node 0, but the cpuset of this process allows only the nodes 1"},
		{"a small quota", func(d *topotree.Description, _ *profiles.Identity) { d.QuotaCPUs = 2 }, Invalid,
			ErrForeignHost, 4, "quota"},
	} {
		v := Verify(b, rehost(t, b, c.change), &b.Plan.Model)
		if v.Judgement != c.want || v.ExitCode() != c.exit || c.kind != nil && !errors.Is(v.Err, c.kind) ||
			!strings.Contains(strings.Join(v.Reasons, "\n"), c.reason) {
			t.Errorf("%s: %s (exit %d) %v, want %s naming %q", c.name, v.Judgement, v.ExitCode(), v.Reasons,
				c.want, c.reason)
		}
		if (len(v.Reasons) == 0) != (v.Judgement == Optimal) {
			t.Errorf("%s: %s with the reasons %q", c.name, v.Judgement, v.Reasons)
		}
	}
}

func TestVerifySettingsAndCeilings(t *testing.T) {
	b := testBundle(t)
	b.Host.Host.Governor, b.Host.Host.THP = "performance", "always"
	h := rehost(t, b, func(_ *topotree.Description, id *profiles.Identity) { id.Governor = "powersave" })
	if v := Verify(b, h, nil); v.Judgement != Suboptimal || v.ExitCode() != 0 || !strings.Contains(v.Reasons[0],
		"powersave") {
		t.Errorf("another governor: %+v", v)
	}
	h = rehost(t, b, func(*topotree.Description, *profiles.Identity) {})
	h.Ceilings[0].Median *= 0.5
	if v := Verify(b, h, nil); v.Judgement != Retune || !strings.Contains(v.Reasons[0], "-50 %") {
		t.Errorf("half the speed: %+v", v)
	}
	h.Ceilings[0].Median = b.Host.Ceilings[0].Median * 1.05
	if v := Verify(b, h, nil); v.Judgement != Optimal {
		t.Errorf("within the noise: %+v", v)
	}
	h.Ceilings[0].Figure = profiles.Figure{Median: 1, Assumed: true}
	if v := Verify(b, h, nil); v.Judgement != Optimal {
		t.Errorf("an assumed figure counts as measured: %+v", v)
	}
	b.Plan.Tuned = false
	if v := Verify(b, nil, nil); v.Judgement != Suboptimal {
		t.Errorf("an untuned plan: %+v", v)
	}
}

func TestCheckModel(t *testing.T) {
	b := testBundle(t)
	other := llama160m("q8_0")
	other.Hidden, other.Weights[3].N = 1024, 1024
	err := Check(b, nil, &other)
	if !errors.Is(err, ErrForeignModel) || ExitCode(err) != 4 || !strings.Contains(err.Error(),
		"hidden (1024, not 768)") || !strings.Contains(err.Error(), "weight v") {
		t.Errorf("%v", err)
	}
	renamed := llama160m("q8_0")
	renamed.Name = "the same under another name"
	if err := Check(b, nil, &renamed); err != nil {
		t.Error(err)
	}
	fewer := llama160m("q8_0")
	fewer.Weights = fewer.Weights[:8]
	if err := Check(b, nil, &fewer); !errors.Is(err, ErrForeignModel) {
		t.Errorf("a weight less: %v", err)
	}
}

// A file of the same architecture in other types is refused by what differs, and by the file that
// the plan was made for.
func TestCheckModelOfOtherTypes(t *testing.T) {
	b := testBundle(t)
	b.Evidence.Model = "llama-160m-q8_0.gguf"
	other := llama160m("q4_0")
	err := Check(b, nil, &other)
	want := `plan for another model: the plan tuned on a test is for "llama-160m-q8_0.gguf", and this model differs in ` +
		"the type of the weights embed q k v o gate up down head (q4_0, not q8_0)"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if strings.Contains(err.Error(), "llama-160m\"") {
		t.Errorf("it names the model that both are: %v", err)
	}
}

// Differences of the model pair like with like, one change for each thing, all in one group.
func TestDiffOfModels(t *testing.T) {
	a, b := testBundle(t).Plan, testBundle(t).Plan
	b.Model.Name, b.Model.Weights = "other", slices.Clone(b.Model.Weights)
	b.Model.Weights[0].Type = "q4_0"
	b.Model.Vocab++
	want := []Change{
		{"model.name", "model", "name", "llama-160m", "other"},
		{"model.vocab", "model", "vocab", "32000", "32001"},
		{"model.weight embed", "model", "weight embed", "32000x768:q8_0", "32000x768:q4_0"},
	}
	if got := Diff(&a, &b); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	b = testBundle(t).Plan
	b.Model.Weights = slices.Clone(b.Model.Weights)
	b.Model.Weights[0].Count++
	if got := Diff(&a, &b); len(got) != 1 || got[0].Item != "weight embed" || got[0].Old == got[0].New {
		t.Errorf("a matrix more: %v", got)
	}
}

func TestVerifyDir(t *testing.T) {
	b := testBundle(t)
	dir := writeBundle(t, b)
	v, got, err := VerifyDir(dir, &b.Host, &b.Plan.Model)
	if err != nil || got == nil || v.Judgement != Optimal {
		t.Errorf("%+v %v", v, err)
	}
	v, _, err = VerifyDir(t.TempDir(), &b.Host, nil)
	if err != nil || v.Judgement != Invalid || v.ExitCode() != 2 {
		t.Errorf("an empty folder: %+v %v", v, err)
	}
	if _, _, err := VerifyDir(dir+"-absent", nil, nil); err == nil {
		t.Error("an absent folder was verified")
	}
	if out, err := json.Marshal(v); err != nil || !strings.HasPrefix(string(out), `{"verdict":"INVALID","reasons":[`) {
		t.Errorf("%s %v", out, err)
	}
}

func TestDiff(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Plan)
		want   []string
	}{
		{"nothing", func(*Plan) {}, nil},
		{"decode PUs", func(p *Plan) { p.Decode.PUs = PUSet{1} }, []string{"service.decode_pus"}},
		{"chunk", func(p *Plan) { p.Chunk = 64 }, []string{"chunk"}},
		{"compute", func(p *Plan) { p.Weights[1].Compute = microkernel.ComputeF32 }, []string{"weights 768x3072:q8_0"}},
		{"one schedule", func(p *Plan) { p.Decode.Tables[0].Rules[1].Schedule.BN *= 2 },
			[]string{"decode 768x768:q8_0 m " + testBundle(t).Plan.Decode.Tables[0].Rules[1].span()}},
		{"a split rule", func(p *Plan) {
			r := &p.Prefill.Tables[2].Rules
			last := len(*r) - 1
			open := (*r)[last]
			(*r)[last].MHi = open.MLo + 10
			open.MLo += 11
			*r = append(*r, open)
		}, nil},
		{"a table gone", func(p *Plan) { p.Decode.Tables = p.Decode.Tables[1:] }, nil}, // its ranges are listed below
		{"another model", func(p *Plan) { p.Model.Layers = 13 }, []string{"model.layers"}},
		{"a rank more", func(p *Plan) { p.Ranks = append(p.Ranks, Rank{PUs: PUSet{9}}) }, []string{"exact",
			"service.tp", "service.ranks[1]"}},
	} {
		a, b := testBundle(t).Plan, testBundle(t).Plan
		c.change(&b)
		var paths []string
		for _, ch := range Diff(&a, &b) {
			if ch.Old == ch.New {
				t.Errorf("%s: %s is %q on both sides", c.name, ch.Path, ch.Old)
			}
			paths = append(paths, ch.Path)
		}
		switch c.name {
		case "a split rule":
			if len(paths) != 1 || paths[0] != "content" {
				t.Errorf("%s: %v", c.name, paths)
			}
		case "a table gone":
			if len(paths) == 0 || !strings.HasPrefix(paths[0], "decode 768x768:q8_0 m 1") {
				t.Errorf("%s: %v", c.name, paths)
			}
		default:
			if !slices.Equal(paths, c.want) {
				t.Errorf("%s: %v, want %v", c.name, paths, c.want)
			}
		}
	}
}

func TestShow(t *testing.T) {
	b := testBundle(t)
	s := b.Show()
	if s.Model != "llama-160m" || !slices.Contains(s.ISA, "avx512_vnni") || s.Evidence == nil ||
		s.Evidence.Rejected != 1 || len(s.Prefill) != 4 {
		t.Errorf("%+v", s)
	}
	if r := s.Decode[0].Rules[0]; r.M != "1-2" || r.Ways != "1x2" || s.Prefill[0].Rules[0].Ways != "dynamic" {
		t.Errorf("rule %+v", r)
	}
	want := "plan tuned on a test (tuned): prefill on PUs 0-3, decode on PUs 0,2, f16 cache"
	if got := b.Plan.Headline(b.State()); got != want {
		t.Errorf("headline %q", got)
	}
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
	if (&Bundle{Plan: b.Plan, Host: b.Host}).Show().Evidence != nil {
		t.Error("a plan without evidence shows some")
	}
}
