package bundle

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/plans/diff"
	"sandwich/plans/internal/hosttest"
	"sandwich/plans/internal/plantest"
	"sandwich/profiles"
)

// newBundle returns a small bundle with a value in every field.
func newBundle(t testing.TB) *Bundle {
	t.Helper()
	plan, host, record := plantest.Parts(t)
	return &Bundle{Plan: plan, Host: host, Evidence: record}
}

// written writes a bundle to a new folder and returns its path.
func written(t testing.TB, b *Bundle) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x.plan")
	if err := b.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func readAll(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(data)
	}
	return files
}

func TestBundleRoundTrip(t *testing.T) {
	b := newBundle(t)
	dir := written(t, b)
	first := readAll(t, dir)
	if len(first) != 4 {
		t.Fatalf("files %v", slices.Collect(mapKeys(first)))
	}
	c, err := Read(dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, first[planFile])
	}
	if err := c.Write(dir); err != nil { // over itself
		t.Fatal(err)
	}
	for name, text := range readAll(t, dir) {
		if text != first[name] {
			t.Errorf("%s changed when it was read and written:\n%s\n%s", name, first[name], text)
		}
	}
	if changes := diff.Plans(&b.Plan, &c.Plan); len(changes) != 0 || c.Plan.Digest() != b.Plan.Digest() {
		t.Errorf("changes %v", changes)
	}
	if profiles.Digest(b.Evidence) != profiles.Digest(c.Evidence) {
		t.Error("the evidence changed")
	}
	siblings, _ := os.ReadDir(filepath.Dir(dir))
	if len(siblings) != 1 {
		t.Errorf("left next to the bundle: %v", siblings)
	}
}

func mapKeys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func TestPlanHoldsNoMeasuredNumber(t *testing.T) {
	a, b := newBundle(t), newBundle(t)
	b.Host.Ceilings[0].Median *= 1.01
	b.Evidence.Noise, b.Evidence.Created = 0.5, "2027-01-01T00:00:00Z"
	x, y := readAll(t, written(t, a)), readAll(t, written(t, b))
	if x[planFile] != y[planFile] {
		t.Error("another measurement changed plan.yaml")
	}
	if x[hostFile] == y[hostFile] || x[evidenceFile] == y[evidenceFile] {
		t.Error("another measurement did not change host.yaml and evidence.yaml")
	}
}

// TestEveryByteIsGuarded damages each byte of a bundle, one at a time.
func TestEveryByteIsGuarded(t *testing.T) {
	dir := written(t, newBundle(t))
	for name, text := range readAll(t, dir) {
		path := filepath.Join(dir, name)
		step := 1
		if testing.Short() || name == planFile {
			step = 53 // plan.yaml is long and all of it is under one hash
		}
		for i := 0; i < len(text); i += step {
			bad := []byte(text)
			flip := []byte{1, 0x20, 0x80}[i/step%3]
			bad[i] ^= flip
			if err := os.WriteFile(path, bad, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(dir); !errors.Is(err, plans.ErrDamaged) || plans.ExitCode(err) != 2 {
				t.Fatalf("%s byte %d ^ %#x: %v", name, i, flip, err)
			}
		}
		for _, bad := range []string{"", text[:len(text)/2], text + "\n", text + text} {
			if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(dir); !errors.Is(err, plans.ErrDamaged) {
				t.Fatalf("%s of %d bytes instead of %d: %v", name, len(bad), len(text), err)
			}
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Read(dir); err != nil {
		t.Fatalf("the bundle did not survive the test: %v", err)
	}
}

func TestReadRefusesWhatIsNoBundle(t *testing.T) {
	if _, err := Read(filepath.Join(t.TempDir(), "absent.plan")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file.plan")
	os.WriteFile(file, []byte("x"), 0o600)
	if _, err := Read(file); !errors.Is(err, plans.ErrDamaged) {
		t.Errorf("a file: %v", err)
	}
	if _, err := Read(t.TempDir()); !errors.Is(err, plans.ErrDamaged) {
		t.Errorf("an empty folder: %v", err)
	}
	for _, name := range []string{planFile, hostFile, evidenceFile} {
		dir := written(t, newBundle(t))
		os.Remove(filepath.Join(dir, name))
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir); !errors.Is(err, plans.ErrDamaged) {
			t.Errorf("%s is a folder: %v", name, err)
		}
	}
}

// TestBundleOfAnOlderProfile checks that a bundle with a profile of version 1 is read and that its
// host has the current version.
func TestBundleOfAnOlderProfile(t *testing.T) {
	b := newBundle(t)
	b.Host.Version = 1
	files, err := b.render()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.name), f.data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got.Host.Version != profiles.Version || got.Host.Ceilings[0].CPUs.String() != "0" {
		t.Errorf("version %d, ceilings %+v", got.Host.Version, got.Host.Ceilings)
	}
	if _, err := Read(written(t, got)); err != nil {
		t.Errorf("written again: %v", err)
	}
}

// resealed changes plan.yaml as text and writes a manifest that fits, as an attacker would.
func resealed(t *testing.T, old, new string) error {
	t.Helper()
	dir := written(t, newBundle(t))
	files := readAll(t, dir)
	text := strings.ReplaceAll(files[planFile], old, new)
	if text == files[planFile] {
		t.Fatalf("%q does not occur in\n%s", old, text)
	}
	manifest := strings.Replace(files[manifestFile], profiles.DigestBytes([]byte(files[planFile])),
		profiles.DigestBytes([]byte(text)), 1)
	os.WriteFile(filepath.Join(dir, planFile), []byte(text), 0o644)
	os.WriteFile(filepath.Join(dir, manifestFile), []byte(manifest), 0o644)
	_, err := Read(dir)
	return err
}

func TestHostilePlansAreRefusedByName(t *testing.T) {
	kernel := newBundle(t).Plan.Prefill.Tables[0].Rules[0].Schedule.Kernel.String()
	slice := "slice: " + newBundle(t).Plan.Prefill.Tables[0].Rules[0].Schedule.Text().Slice
	for want, c := range map[string][2]string{
		"MR 40":                   {kernel, strings.Replace(kernel, "3x", "40x", 1)},
		"unknown instruction set": {kernel, strings.Replace(kernel, "avx512/", "avx9000/", 1)},
		"bk 0":                    {slice, "slice: 1x64x0"},
		"PU":                      {"pus: 0-3", "pus: 0-1000000000"},
		"negative":                {"pus: 0-3", "pus: \"-3\""},
		"unknown field shell":     {"tuned: true", "tuned: true\nshell: rm"},
		"anchor":                  {"ranks:", "ranks: &a"},
		"unknown field service":   {"ranks:", "service: {tp: 1}\nranks:"}, // what follows from other fields
		"unknown field exact":     {"tuned: true", "tuned: true\nexact: true"},
		"unknown field chain":     {"compute: int8", "compute: int8, chain: block"},
		"unknown field widen":     {slice, slice + ", widen: false"},
		"unknown compute":         {"compute: int8", "compute: fp4"},
		"KV cache type":           {"kv: f16", "kv: f8"},
		"9999999999":              {slice, "slice: 99999999999999999999x64xall"},
		"q2_K":                    {":q8_0", ":q2_K"},
	} {
		if want == "negative" {
			want = "-3"
		}
		err := resealed(t, c[0], c[1])
		if !errors.Is(err, plans.ErrDamaged) || !strings.Contains(err.Error(), want) {
			t.Errorf("want a refusal that names %q, got %v", want, err)
		}
		if err != nil && len(err.Error()) > 600 {
			t.Errorf("%q: a message of %d bytes", want, len(err.Error()))
		}
	}
	// A change that is legal in itself is found by the content hash.
	if err := resealed(t, "chunk: 512", "chunk: 256"); !errors.Is(err, plans.ErrDamaged) ||
		!strings.Contains(err.Error(),
			"content") {
		t.Errorf("a changed chunk: %v", err)
	}
}

func TestPlanAndHostBelongTogether(t *testing.T) {
	b := newBundle(t)
	b.Plan.Fingerprint = hosttest.Cores(t, 2, "avx2").Fingerprint()
	if err := b.Write(filepath.Join(t.TempDir(), "x.plan")); !errors.Is(err, plans.ErrDamaged) {
		t.Errorf("a plan with a foreign profile was written: %v", err)
	}
	b = newBundle(t)
	b.Evidence.Budget = math.Inf(1)
	if err := b.Write(filepath.Join(t.TempDir(), "x.plan")); err == nil {
		t.Error("an infinite budget was written")
	}
}

func TestWriteReplacesOnlyBundles(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "precious.txt"), []byte("x"), 0o600)
	if err := newBundle(t).Write(dir); err == nil {
		t.Fatal("a folder with other files was replaced")
	}
	if _, err := os.Stat(filepath.Join(dir, "precious.txt")); err != nil {
		t.Error(err)
	}
	if err := newBundle(t).Write(filepath.Join(dir, "new", "deep", "x.plan")); err != nil {
		t.Errorf("below folders that did not exist: %v", err)
	}
}

func TestFindNewest(t *testing.T) {
	dir := t.TempDir()
	b := newBundle(t)
	digest := b.Plan.Model.Digest()
	if _, _, err := FindNewest(dir, b.Plan.Fingerprint, digest); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in an empty folder: %v", err)
	}
	for name, created := range map[string]string{"b.plan": "2026-01-01T00:00:00Z", "a.plan": "2026-03-01T00:00:00Z",
		"c.plan": "2026-02-01T00:00:00Z", "damaged.plan": "2026-09-01T00:00:00Z"} {
		b.Evidence.Created = created
		if err := b.Write(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	os.WriteFile(filepath.Join(dir, "damaged.plan", planFile), []byte("x"), 0o644)
	os.WriteFile(filepath.Join(dir, "file.plan"), []byte("x"), 0o644)
	path, got, err := FindNewest(dir, b.Plan.Fingerprint, digest)
	if err != nil || filepath.Base(path) != "a.plan" || got.Evidence.Created != "2026-03-01T00:00:00Z" {
		t.Errorf("%s, %v", path, err)
	}
	if _, _, err := FindNewest(dir, "sha256:other", digest); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("for another host: %v", err)
	}
	if _, _, err := FindNewest(dir, b.Plan.Fingerprint, "sha256:other"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("for another model: %v", err)
	}
}
