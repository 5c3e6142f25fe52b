package plans

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/profiles"
)

// v1Bundles were written by the last build of version 1: a tuned plan of the embedded model, two
// ranks, a path that is not exact, and experts of mixed types. Beside each lies what that build
// read in it, as factsOf spells it.
var v1Bundles = []string{"tuned", "two-ranks", "bf16", "experts"}

// TestVersion1Reads: a version 1 bundle runs the same kernels over the same schedules, and is
// judged alike.
func TestVersion1Reads(t *testing.T) {
	for _, name := range v1Bundles {
		b, err := Read(filepath.Join("testdata", "v1", name+".plan"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("testdata", "v1", name+".txt"))
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

// TestVersion1Twice: what version 1 stored twice must agree, and its content hash still guards it.
func TestVersion1Twice(t *testing.T) {
	dir := filepath.Join("testdata", "v1", "two-ranks.plan")
	text, err := os.ReadFile(filepath.Join(dir, planFile))
	if err != nil {
		t.Fatal(err)
	}
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
		changed := strings.ReplaceAll(string(text), c[0], c[1])
		if changed == string(text) {
			t.Fatalf("%q does not occur", c[0])
		}
		_, err := decode(func(name string, _ int64) ([]byte, error) {
			data, err := os.ReadFile(filepath.Join(dir, name))
			switch name {
			case planFile:
				data = []byte(changed)
			case manifestFile:
				data = bytes.Replace(data, []byte(profiles.DigestBytes(text)),
					[]byte(profiles.DigestBytes([]byte(changed))), 1)
			}
			return data, err
		})
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), want) {
			t.Errorf("want a refusal that names %q, got %v", want, err)
		}
	}
}

// TestOtherVersions: a bundle is refused by the number in its manifest, before anything else of it
// is read; the builds before version 2 do the same.
func TestOtherVersions(t *testing.T) {
	for _, version := range []int{0, 3, -1} {
		manifest, err := profiles.EncodeYAML(Manifest{Format: manifestFormat, Version: version})
		if err != nil {
			t.Fatal(err)
		}
		_, err = decode(inMemory(map[string][]byte{manifestFile: manifest}))
		want := fmt.Sprintf("has version %d; this build reads versions 1 and 2", version)
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), want) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// TestVersion1IsWrittenAsVersion2: reading and writing migrates, and loses nothing.
func TestVersion1IsWrittenAsVersion2(t *testing.T) {
	for _, name := range v1Bundles {
		old, err := Read(filepath.Join("testdata", "v1", name+".plan"))
		if err != nil {
			t.Fatal(err)
		}
		again, err := Read(writeBundle(t, old))
		if err != nil {
			t.Fatal(err)
		}
		if again.Manifest.Version != Version || len(Diff(&old.Plan, &again.Plan)) != 0 {
			t.Errorf("%s: version %d, %v", name, again.Manifest.Version, Diff(&old.Plan, &again.Plan))
		}
		if factsOf(t, old) != factsOf(t, again) || profiles.Digest(old.Evidence) != profiles.Digest(again.Evidence) {
			t.Errorf("%s: the facts or the evidence changed", name)
		}
	}
}

// factsOf is what a build does with a bundle: its kernels, the schedule of every weight for 1 to
// 600 rows, and what verify says on its own host, after an update of the kernel, and elsewhere.
func factsOf(t *testing.T, b *Bundle) string {
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
	for _, v := range []Verdict{Verify(b, &b.Host, &p.Model), Verify(b, &updated, nil), Verify(b, elsewhere, nil)} {
		fmt.Fprintf(&out, "verdict %s %q not exact: %q\n", v.Judgement, v.Reasons, v.Rounding)
	}
	return out.String()
}

// phaseFacts lists the schedules by Lookup, in runs of rows.
func phaseFacts(out *strings.Builder, name string, ph *Phase) {
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
