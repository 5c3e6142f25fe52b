package planstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sandwich/cmd/sandwich/internal/oci"
	"sandwich/cmd/sandwich/internal/planstore"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/plans/heuristic"
	"sandwich/plans/hostkey"
	"sandwich/profiles"
	"sandwich/runtime/demo"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model/modelshape"
	"sandwich/topotree/hwloc"
)

// shape is that of the embedded model.
var shape = sync.OnceValue(func() plans.ModelShape {
	f, err := gguf.Parse(demo.Model())
	if err != nil {
		panic(err)
	}
	defer f.Close()
	s, err := modelshape.Of(f)
	if err != nil {
		panic(err)
	}
	return s
})

// host returns a host with a CPU model.
func host(t *testing.T, model string) *profiles.Profile {
	t.Helper()
	m, err := hwloc.ReadSynthetic("pack:1 core:4 pu:1")
	if err != nil {
		t.Fatal(err)
	}
	d := m.Describe()
	d.Arch, d.Model = "x86_64", model
	if m, err = d.Machine(); err != nil {
		t.Fatal(err)
	}
	return profiles.New(m, profiles.Identity{ISA: []string{"avx2"}})
}

// made returns a packed plan for a host.
func made(t *testing.T, h *profiles.Profile, name, created string) ([]byte, *bundle.Bundle) {
	t.Helper()
	p, err := heuristic.Default(h, shape(), heuristic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p.Name, p.Tuned = name, true
	b := &bundle.Bundle{Plan: *p, Host: *h, Evidence: evidence.Evidence{Version: p.Version, Created: created}}
	path := filepath.Join(t.TempDir(), "x.sandwich")
	if err := b.Write(path); err != nil {
		t.Fatal(err)
	}
	packed, b, err := bundle.Pack(path)
	if err != nil {
		t.Fatal(err)
	}
	return packed, b
}

func open(t *testing.T, location string) planstore.Store {
	t.Helper()
	s, err := planstore.Open(location, oci.Options{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// push pushes a plan under its own tag, or under another one.
func push(t *testing.T, s planstore.Store, tag string, packed []byte, b *bundle.Bundle) {
	t.Helper()
	if tag == "" {
		tag = hostkey.OfBundle(b).Tag()
	}
	if _, err := s.Push(t.Context(), tag, packed, b); err != nil {
		t.Fatal(err)
	}
}

func index(t *testing.T, s planstore.Store, want int) {
	t.Helper()
	if _, n, err := s.Index(t.Context(), func(err error) { t.Log(err) }); err != nil || n != want {
		t.Fatalf("the index lists %d plans, want %d: %v", n, want, err)
	}
}

// find returns the name of the plan that is found for a host, "" for none, with the notes.
func find(t *testing.T, f *planstore.Finder, h *profiles.Profile) (name, notes string, err error) {
	t.Helper()
	var lines []string
	f.Note = func(text string) { lines = append(lines, text) }
	s := shape()
	found, err := f.Find(t.Context(), h, &s)
	if found != nil {
		b, _, err := found.Bundle(h)
		if err != nil {
			t.Fatal(err)
		}
		name = b.Plan.Name
	}
	return name, strings.Join(lines, "\n"), err
}

// places returns a new location of each kind.
func places(t *testing.T) map[string]string {
	return map[string]string{"folder": t.TempDir(), "layout": "oci:" + filepath.Join(t.TempDir(), "layout")}
}

// TestConcurrentPushes pushes plans of several hosts at once. The index then lists all of them, and
// each host finds its own.
func TestConcurrentPushes(t *testing.T) {
	const hosts = 5
	for kind, location := range places(t) {
		var wg sync.WaitGroup
		errs := make([]error, hosts)
		for i := range hosts {
			packed, b := made(t, host(t, fmt.Sprint("CPU ", i)), fmt.Sprint("plan ", i), "2026-01-31T12:00:00Z")
			wg.Go(func() {
				_, errs[i] = open(t, location).Push(t.Context(), hostkey.OfBundle(b).Tag(), packed, b)
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		s := open(t, location)
		index(t, s, hosts)
		for i := range hosts {
			name, notes, err := find(t, &planstore.Finder{Store: s}, host(t, fmt.Sprint("CPU ", i)))
			if name != fmt.Sprint("plan ", i) || err != nil {
				t.Errorf("%s: host %d finds %q: %v: %s", kind, i, name, err, notes)
			}
		}
		name, notes, err := find(t, &planstore.Finder{Store: s}, host(t, "CPU x"))
		if name != "" || err != nil || !strings.Contains(notes, "  CPU model: CPU ") {
			t.Errorf("%s: another host finds %q: %v: %s", kind, name, err, notes)
		}
	}
}

// TestNewest checks that of several plans for one host the newest by measurement is used, and the
// next one if that is damaged.
func TestNewest(t *testing.T) {
	for kind, location := range places(t) {
		h, s := host(t, "CPU"), open(t, location)
		for _, name := range []string{"2026-01-01", "2026-03-01", "2026-02-01"} {
			packed, b := made(t, h, name, name+"T00:00:00Z")
			push(t, s, name, packed, b)
		}
		index(t, s, 3)
		name, notes, err := find(t, &planstore.Finder{Store: s}, h)
		if name != "2026-03-01" || err != nil || !strings.Contains(notes, "has 3 plans for this host and model") {
			t.Errorf("%s: %q: %v: %s", kind, name, err, notes)
		}
	}
}

// TestLabelsAreNotTrusted changes the labels of an index so that a plan for another host seems to
// fit.
func TestLabelsAreNotTrusted(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	packed, b := made(t, host(t, "Other CPU"), "other", "2026-01-31T12:00:00Z")
	push(t, s, "", packed, b)
	index(t, s, 1)
	path := filepath.Join(dir, "index.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(data), "Other CPU", "CPU")), 0o600); err != nil {
		t.Fatal(err)
	}
	name, notes, err := find(t, &planstore.Finder{Store: s}, host(t, "CPU"))
	if name != "" || err != nil || !strings.Contains(notes, "it differs in CPU model: Other CPU in the plan") {
		t.Errorf("%q: %v: %s", name, err, notes)
	}
}

// TestCache checks the last plan of a store that cannot be read any more, and that a refused plan
// neither is used nor replaces it.
func TestCache(t *testing.T) {
	root := t.TempDir()
	layout, cache := filepath.Join(root, "layout"), filepath.Join(root, "cache")
	h, s := host(t, "CPU"), open(t, "oci:"+layout)
	packed, b := made(t, h, "good", "2026-01-31T12:00:00Z")
	push(t, s, "", packed, b)
	index(t, s, 1)
	f := &planstore.Finder{Store: s, Cache: cache, Accept: func(b *bundle.Bundle) error {
		if b.Plan.Name != "good" {
			return plans.ErrSignature
		}
		return nil
	}}
	if name, notes, err := find(t, f, h); name != "good" || notes != "" || err != nil {
		t.Fatalf("%q: %v: %s", name, err, notes)
	}
	packed, b = made(t, h, "bad", "2026-02-28T12:00:00Z")
	push(t, s, "", packed, b)
	index(t, s, 1)
	if name, _, err := find(t, f, h); name != "" || !errors.Is(err, plans.ErrSignature) {
		t.Errorf("a refused plan: %q, %v", name, err)
	}
	if err := os.RemoveAll(layout); err != nil {
		t.Fatal(err)
	}
	name, notes, err := find(t, f, h)
	if name != "good" || err != nil || !strings.Contains(notes, "no such file") {
		t.Errorf("without the store: %q: %v: %s", name, err, notes)
	}
	f.Accept = func(*bundle.Bundle) error { return plans.ErrSignature }
	if name, _, err := find(t, f, h); name != "" || !errors.Is(err, plans.ErrSignature) {
		t.Errorf("a refused plan in the cache: %q, %v", name, err)
	}
	f.Accept = nil
	for what, g := range map[string]*planstore.Finder{"another store": {Store: open(t, "oci:"+layout+":other"),
		Cache: cache}, "another cache": {Store: s, Cache: root}} {
		name, notes, err := find(t, g, h)
		if name != "" || err != nil || !strings.Contains(notes, "has no plan for this host and model either") {
			t.Errorf("%s: %q: %v: %s", what, name, err, notes)
		}
	}
	if name, notes, _ := find(t, &planstore.Finder{Store: s, Cache: cache}, host(t, "Other CPU")); name != "" {
		t.Errorf("another host finds %q: %s", name, notes)
	}
}

// TestLookup checks what a tuning job finds: its own tag without an index, a plan of another name
// by the index, and nothing in an empty place.
func TestLookup(t *testing.T) {
	for kind, location := range places(t) {
		h, s, sh := host(t, "CPU"), open(t, location), shape()
		f := &planstore.Finder{Store: s, Note: func(text string) { t.Logf("%s: %s", kind, text) }}
		look := func(want string) {
			t.Helper()
			found, err := f.Lookup(t.Context(), h, &sh)
			if err != nil || (found != nil) != (want != "") {
				t.Fatalf("%s: found %v, want %q: %v", kind, found != nil, want, err)
			}
			if found == nil {
				return
			}
			if b, _, err := found.Bundle(h); err != nil || b.Plan.Name != want {
				t.Errorf("%s: %v", kind, err)
			}
		}
		look("")
		packed, b := made(t, host(t, "Other CPU"), "other", "2026-01-31T12:00:00Z")
		push(t, s, "", packed, b)
		look("")
		packed, b = made(t, h, "named", "2026-01-31T12:00:00Z")
		push(t, s, "some-name", packed, b)
		index(t, s, 2)
		look("named")
		packed, b = made(t, h, "own", "2026-01-01T12:00:00Z")
		push(t, s, "", packed, b)
		look("own")
	}
	f := &planstore.Finder{Store: open(t, "127.0.0.1:1/plans"), Note: func(string) {}}
	sh := shape()
	if _, err := f.Lookup(t.Context(), host(t, "CPU"), &sh); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("a registry that does not answer: %v", err)
	}
}
