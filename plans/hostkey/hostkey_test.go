package hostkey_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/plans/hostkey"
	"sandwich/plans/internal/bundletest"
	"sandwich/plans/internal/plantest"
	"sandwich/profiles"
	"sandwich/topotree"
)

// limited returns a host whose processes may use some PUs.
func limited(t *testing.T, h *profiles.Profile, pus ...int) *profiles.Profile {
	return plantest.Rehost(t, h, func(d *topotree.Description, _ *profiles.Identity) {
		d.Allowed = topotree.NewCPUSet(pus...)
	})
}

// TestDifferences compares a plan's key with those of other hosts, models and CPUs, and checks that
// exactly one field differs.
func TestDifferences(t *testing.T) {
	b := bundletest.New(t)
	b.Host = *limited(t, &b.Host, 0, 1)
	made := hostkey.OfBundle(b)
	other := b.Plan.Model
	other.Name, other.Layers = "other", other.Layers+1
	for name, c := range map[string]struct {
		host  *profiles.Profile
		shape *plans.ModelShape
		want  string // "": fits
	}{
		"same": {&b.Host, &b.Plan.Model, ""},
		"measured classes": {plantest.Rehost(t, &b.Host, func(d *topotree.Description, _ *profiles.Identity) {
			d.Measured = []topotree.MeasuredClass{{Name: "fast", CPUs: topotree.NewCPUSet(0, 1)},
				{Name: "slow", CPUs: d.Online.Minus(topotree.NewCPUSet(0, 1))}}
		}), &b.Plan.Model, ""},
		"equivalent": {limited(t, &b.Host, 2, 3), &b.Plan.Model, ""},
		"fewer CPUs": {limited(t, &b.Host, 1), &b.Plan.Model, "available CPUs: 0-1 (subtree "},
		"model":      {&b.Host, &other, `model: "llama-160m" (shape `},
		"CPU": {plantest.Rehost(t, &b.Host, func(d *topotree.Description, id *profiles.Identity) {
			id.CPUModel = "Other CPU"
		}), &b.Plan.Model, "CPU model: Test CPU in the plan, Other CPU here"},
		"architecture": {plantest.Rehost(t, &b.Host, func(d *topotree.Description, id *profiles.Identity) {
			id.Arch = "riscv64"
		}), &b.Plan.Model, "architecture: amd64 in the plan, riscv64 here"},
		"features": {plantest.Rehost(t, &b.Host, func(d *topotree.Description, id *profiles.Identity) {
			id.ISA = []string{"avx512", "avx2", "avx512_bf16"}
		}), &b.Plan.Model, "features: avx512_vnni in the plan, avx512_bf16 here"},
		"order of features": {plantest.Rehost(t, &b.Host, func(d *topotree.Description, id *profiles.Identity) {
			id.ISA = []string{"avx512_vnni", "avx512", "avx2"}
		}), &b.Plan.Model, ""},
		"quota of all CPUs": {plantest.Rehost(t, &b.Host, func(d *topotree.Description, id *profiles.Identity) {
			d.QuotaCPUs = 2
		}), &b.Plan.Model, ""},
		"quota": {plantest.Rehost(t, &b.Host, func(d *topotree.Description, id *profiles.Identity) {
			d.QuotaCPUs = 1
		}), &b.Plan.Model, "CPU quota: none in the plan, 1 PU here"},
	} {
		here := hostkey.OfHost(c.host, c.shape)
		got := hostkey.Differences(made, here)
		if (len(got) == 0) != (c.want == "") || len(got) > 1 {
			t.Errorf("%s: %v", name, got)
			continue
		}
		if c.want != "" && !strings.HasPrefix(got[0].String(), c.want) {
			t.Errorf("%s: %q, want %q", name, got[0], c.want)
		}
		if same := made.Tag() == here.Tag(); same != (c.want == "") {
			t.Errorf("%s: the tags are %s and %s", name, made.Tag(), here.Tag())
		}
	}
}

// TestTopology checks that the kind and the topology do not depend on the CPUs of the process.
func TestTopology(t *testing.T) {
	b := bundletest.New(t)
	all, one := hostkey.OfHost(&b.Host, nil), hostkey.OfHost(limited(t, &b.Host, 3), nil)
	if all.Topology != one.Topology || all.Kind() != one.Kind() || all.Subtree == one.Subtree {
		t.Errorf("%+v and %+v", all, one)
	}
}

// TestSelect checks the order of plans that fit and the choice of the nearest one.
func TestSelect(t *testing.T) {
	here := hostkey.Key{Arch: "amd64", CPUModel: "A", Topology: "t", Model: "m", Subtree: "s"}
	entry := func(name, created string, tuned bool, change func(*hostkey.Key)) hostkey.Entry {
		k := here
		if change != nil {
			change(&k)
		}
		return hostkey.Entry{Name: name, Key: k, Created: created, Tuned: tuned}
	}
	list := []hostkey.Entry{
		entry("old", "2026-01-01T00:00:00Z", true, nil),
		entry("untuned", "2026-03-01T00:00:00Z", false, nil),
		entry("new", "2026-02-01T00:00:00.5Z", true, nil),
		entry("almost", "2026-02-01T00:00:00Z", true, nil),
		entry("undated", "yesterday", true, nil),
		entry("other", "2026-04-01T00:00:00Z", true, func(k *hostkey.Key) { k.Subtree = "x" }),
	}
	fits, nearest := hostkey.Select(list, here)
	var names []string
	for _, e := range fits {
		names = append(names, e.Name)
	}
	if got := strings.Join(names, " "); got != "new almost old undated untuned" || nearest != nil {
		t.Errorf("%s, nearest %v", got, nearest)
	}
	far := []hostkey.Entry{
		entry("cpu", "2026-01-01T00:00:00Z", true, func(k *hostkey.Key) { k.CPUModel = "B" }),
		entry("subtree", "2026-01-01T00:00:00Z", true, func(k *hostkey.Key) { k.Subtree = "x" }),
		entry("newer subtree", "2026-01-02T00:00:00Z", true, func(k *hostkey.Key) { k.Subtree = "y" }),
		entry("model", "2026-01-01T00:00:00Z", true, func(k *hostkey.Key) { k.Model = "n" }),
	}
	if fits, nearest = hostkey.Select(far, here); len(fits) > 0 || nearest == nil || nearest.Name != "newer subtree" {
		t.Errorf("%v, nearest %v", fits, nearest)
	}
	if fits, nearest = hostkey.Select(nil, here); len(fits) > 0 || nearest != nil {
		t.Errorf("an empty list gives %v and %v", fits, nearest)
	}
}

// TestTag checks the characters and the length of tags of odd model names.
func TestTag(t *testing.T) {
	valid := regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)
	digest := "sha256:" + strings.Repeat("ab", 32)
	for _, name := range []string{"", "llama", "Llama 3.1/8B Instruct", "..hidden", "模型", strings.Repeat("é", 300),
		"a\nb", "-"} {
		for _, model := range []string{"", digest} {
			tag := hostkey.Key{Name: name, Model: model}.Tag()
			if !valid.MatchString(tag) {
				t.Errorf("%q: %q is not a tag", name, tag)
			}
		}
	}
}

// TestLabels checks that labels give the key back and that damaged ones are rejected.
func TestLabels(t *testing.T) {
	key := hostkey.OfBundle(bundletest.New(t))
	got, err := hostkey.ParseLabels(key.Labels())
	if err != nil || got != key {
		t.Errorf("%+v, %v, want %+v", got, err, key)
	}
	for label := range key.Labels() {
		for name, change := range map[string]func(map[string]string){
			"missing": func(m map[string]string) { delete(m, label) },
			"long":    func(m map[string]string) { m[label] = strings.Repeat("1", 1<<20) },
		} {
			labels := key.Labels()
			change(labels)
			if _, err := hostkey.ParseLabels(labels); err == nil || !strings.Contains(err.Error(), label) ||
				len(err.Error()) > 200 {
				t.Errorf("%s %s: %v", name, label, err)
			}
		}
	}
	for _, quota := range []string{"-1", "x", fmt.Sprint(uint64(1) << 63)} {
		labels := key.Labels()
		labels["dev.sandwich.quota"] = quota
		if _, err := hostkey.ParseLabels(labels); err == nil {
			t.Errorf("the quota %s is accepted", quota)
		}
	}
}
