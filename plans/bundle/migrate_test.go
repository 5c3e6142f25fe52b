package bundle_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/check"
	"sandwich/plans/diff"
	"sandwich/plans/internal/bundletest"
	"sandwich/profiles"
)

// olderBundles were written by the last build of each earlier version: tuned plans of the embedded
// model, two ranks, a path that is not exact, and experts of mixed types. NAME.txt has what that
// build read in NAME.plan, as printed by factsOf.
var olderBundles = []string{"v1/tuned", "v1/two-ranks", "v1/bf16", "v1/experts", "v2/tuned", "v2/two-ranks", "v2/bf16"}

// TestOlderVersionsRead checks that a bundle of an earlier version has the same kernels, schedules
// and verdicts as in the build that wrote it.
func TestOlderVersionsRead(t *testing.T) {
	for _, name := range olderBundles {
		b, err := bundle.Read(filepath.Join("..", "testdata", name+".plan"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, err := os.ReadFile(filepath.Join("..", "testdata", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Split(factsOf(t, b), "\n")
		for i, line := range strings.Split(string(want), "\n") {
			if i >= len(got) || got[i] != line {
				t.Errorf("%s: line %d is not %q", name, i+1, line)
				break
			}
		}
		if n := strings.Count(string(want), "\n"); len(got) != n+1 {
			t.Errorf("%s: %d facts, want %d", name, len(got)-1, n)
		}
	}
}

// TestVersion2Refusals checks that keys of version 3 and changed contents are refused in version 2.
func TestVersion2Refusals(t *testing.T) {
	for want, c := range map[string]struct{ file, old, new string }{
		"unknown field placement": {bundle.PlanFile, "tuned: true",
			"tuned: true\nplacement: []"},
		"plan.yaml has version 3 in a bundle of version 2": {bundle.PlanFile, "version: 2", "version: 3"},
		"evidence of version 2 has keys":                   {bundle.EvidenceFile, "unlike_costs:", "distinct_costs:"},
		"has the content":                                  {bundle.EvidenceFile, "unlike_costs: ", "unlike_costs: 1"},
	} {
		err := readChanged(t, filepath.Join("..", "testdata", "v2", "tuned.plan"), c.file, c.old, c.new)
		if !errors.Is(err, plans.ErrDamaged) || !strings.Contains(err.Error(), want) {
			t.Errorf("want a refusal that contains %q, got %v", want, err)
		}
	}
}

// TestVersion1Twice checks that facts which version 1 stored twice must agree, and that its content
// hash is verified.
func TestVersion1Twice(t *testing.T) {
	dir := filepath.Join("..", "testdata", "v1", "two-ranks.plan")
	for want, c := range map[string][2]string{
		"degree 3 on 2 ranks":                {"tp: 2", "tp: 3"},
		"prefill: pus are 0-191":             {"prefill_pus: 0-191", "prefill_pus: 0-190"},
		"decode: pus are 0-191":              {"decode_pus: 0-191", "decode_pus: 0-190"},
		"exact is true":                      {"exact: false", "exact: true"},
		`chain is "pair"`:                    {"chain: block", "chain: pair"},
		"widen":                              {"kernel:", "widen: true, kernel:"},
		"version 2 in a bundle of version 1": {"version: 1", "version: 2"},
		"unknown field class":                {"weight: 256x2048:q4_0", "weight: 256x2048:q4_0\n      class: big"},
		"has the content":                    {"chunk: 512", "chunk: 256"},
	} {
		err := readChanged(t, dir, bundle.PlanFile, c[0], c[1])
		if !errors.Is(err, plans.ErrDamaged) || !strings.Contains(err.Error(), want) {
			t.Errorf("want a refusal that contains %q, got %v", want, err)
		}
	}
}

// readChanged reads the bundle in dir with a text replaced in one file and the manifest's hash of
// its bytes adapted.
func readChanged(t *testing.T, dir, file, from, to string) error {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(string(text), from, to)
	if changed == string(text) {
		t.Fatalf("%q does not occur in %s", from, file)
	}
	files := map[string][]byte{}
	for _, name := range []string{bundle.PlanFile, bundle.HostFile, bundle.EvidenceFile, bundle.ManifestName} {
		if files[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	files[file] = []byte(changed)
	files[bundle.ManifestName] = bytes.Replace(files[bundle.ManifestName], []byte(profiles.DigestBytes(text)),
		[]byte(profiles.DigestBytes([]byte(changed))), 1)
	_, err = bundle.Decode(files)
	return err
}

// TestOtherVersions checks that a bundle of an unknown version is refused by the number in its
// manifest before its other files are read.
func TestOtherVersions(t *testing.T) {
	for _, version := range []int{0, plans.Version + 1, -1} {
		manifest, err := profiles.EncodeYAML(bundle.Manifest{Format: bundle.ManifestFormat, Version: version})
		if err != nil {
			t.Fatal(err)
		}
		_, err = bundle.Decode(map[string][]byte{bundle.ManifestName: manifest})
		want := fmt.Sprintf("has version %d; this build reads versions 1 to 3", version)
		if !errors.Is(err, plans.ErrDamaged) || !strings.Contains(err.Error(), want) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// TestOlderVersionsMigrate checks that reading and writing a bundle migrates it and loses nothing.
func TestOlderVersionsMigrate(t *testing.T) {
	for _, name := range olderBundles {
		old, err := bundle.Read(filepath.Join("..", "testdata", name+".plan"))
		if err != nil {
			t.Fatal(err)
		}
		again, err := bundle.Read(bundletest.Write(t, old))
		if err != nil {
			t.Fatal(err)
		}
		if again.Manifest.Version != plans.Version || len(diff.Plans(&old.Plan, &again.Plan)) != 0 {
			t.Errorf("%s: version %d, %v", name, again.Manifest.Version, diff.Plans(&old.Plan, &again.Plan))
		}
		if factsOf(t, old) != factsOf(t, again) || profiles.Digest(old.Evidence) != profiles.Digest(again.Evidence) {
			t.Errorf("%s: the facts or the evidence changed", name)
		}
	}
}

// factsOf prints what a build does with a bundle: its kernels, the schedule of every weight for 1
// to 600 rows, and the verdicts on its own host, after an update of the kernel, and elsewhere.
func factsOf(t *testing.T, b *bundle.Bundle) string {
	t.Helper()
	var out strings.Builder
	p := &b.Plan
	fmt.Fprintf(&out, "%s for %s, kv %s, seq_max %d, batch_max %d, chunk %d, tuned %v\n",
		p.Name, p.Model.Digest(), p.KV, p.SeqMax, p.BatchMax, p.Chunk, p.Tuned)
	for _, r := range p.Ranks {
		fmt.Fprintf(&out, "rank on PUs %s, node %d\n", r.PUs, r.NUMANode)
	}
	for _, k := range p.Kernels() {
		fmt.Fprintf(&out, "kernel %s\n", k)
	}
	phaseFacts(&out, "prefill", &p.Prefill)
	phaseFacts(&out, "decode", &p.Decode)
	for _, w := range p.Weights {
		fmt.Fprintf(&out, "weight %s in %s\n", w.WeightKey, w.Compute)
	}
	updated := b.Host
	updated.Host.Kernel = "another"
	elsewhere, err := profiles.Builtin("m4pro")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []check.Verdict{check.Verify(b, &b.Host, &p.Model), check.Verify(b, &updated, nil),
		check.Verify(b, elsewhere, nil)} {
		fmt.Fprintf(&out, "verdict %s %q not exact: %q\n", v.Judgement, v.Reasons, v.Rounding)
	}
	return out.String()
}

// phaseFacts lists the schedules by Lookup, in ranges of rows.
func phaseFacts(out *strings.Builder, name string, ph *plans.Phase) {
	fmt.Fprintf(out, "%s on PUs %s\n", name, ph.PUs)
	for _, t := range ph.Tables {
		from := 1
		for m := 1; m <= 600; m++ {
			s, _ := ph.Lookup(t.WeightKey, m)
			if next, _ := ph.Lookup(t.WeightKey, m+1); m == 600 || next != s {
				fmt.Fprintf(out, "%s %s m %d-%d: %s\n", name, t.WeightKey, from, m, s)
				from = m + 1
			}
		}
	}
}
