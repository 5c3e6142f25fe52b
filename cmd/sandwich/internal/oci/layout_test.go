package oci

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
)

func placeOf(t testing.TB, text string, o Options) *Place {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	p, err := ParsePlace(text, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func push(t testing.TB, place, packed string) string {
	t.Helper()
	pinned, err := placeOf(t, place, Options{}).Push(t.Context(), []byte(packed), map[string]string{"a": "b"})
	if err != nil {
		t.Fatal(err)
	}
	return pinned
}

func TestParsePlace(t *testing.T) {
	for text, want := range map[string]Place{
		"oci:plans":            {name: "oci:plans", tag: "latest"},
		"oci:a/b:c:1.0":        {name: "oci:a/b:c", tag: "1.0"},
		"oci:/a:b/c":           {name: "oci:/a:b/c", tag: "latest"},
		"./plans:x":            {name: "oci:./plans", tag: "x"},
		"registry.example/a/b": {name: "registry.example/a/b", tag: "latest"},
		"localhost:5000/a/b:1": {name: "localhost:5000/a/b", tag: "1"},
		"oci:":                 {}, "oci::x": {}, "plans": {}, "oci:x:": {}, "oci:x:a b": {}, "oci:x@sha256:0": {},
		"oci:x@sha512:" + strings.Repeat("0", 128): {},
		"oci:x:1@sha256:" + strings.Repeat("0", 64): {name: "oci:x",
			digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"},
		"http://registry.example/a": {}, "registry.example/A": {}, "": {},
	} {
		p, err := ParsePlace(text, Options{})
		if want.name == "" {
			if err == nil {
				t.Errorf("%q is %s:%s", text, p.name, p.tag)
			}
			continue
		}
		if err != nil || p.name != want.name || p.tag != want.tag || p.digest != want.digest {
			t.Errorf("%q: %+v, %v", text, p, err)
		}
	}
}

// TestLayoutKeepsWhatOthersWrote checks that a push moves its tag and keeps all other entries of
// the index, also those of unknown types.
func TestLayoutKeepsWhatOthersWrote(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plans")
	first := push(t, "oci:"+dir+":a", "one")
	path := filepath.Join(dir, "index.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), `"manifests":[`, `"odd":1,"manifests":[{"digest":"sha256:x","more":[2]},`, 1)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	second := push(t, "oci:"+dir+":a", "two")
	push(t, "oci:"+dir+":b", "one")
	data, err = os.ReadFile(path)
	if err != nil || !strings.Contains(string(data), `"odd":1`) ||
		!strings.Contains(string(data), `{"digest":"sha256:x","more":[2]}`) || first == second {
		t.Errorf("%s, %v", data, err)
	}
	for tag, want := range map[string]string{"a": "two", "b": "one"} {
		got, _, err := placeOf(t, "oci:"+dir+":"+tag, Options{}).Pull(t.Context())
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", tag, got, err)
		}
	}
	got, pinned, err := placeOf(t, second, Options{}).Pull(t.Context())
	if err != nil || string(got) != "two" || pinned != second {
		t.Errorf("by digest: %q, %s, %v", got, pinned, err)
	}
}

// TestTwoPushers checks that concurrent pushes lose no tag.
func TestTwoPushers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plans")
	var all sync.WaitGroup
	for i := range 6 {
		all.Add(1)
		go func() {
			defer all.Done()
			p := placeOf(t, fmt.Sprintf("oci:%s:t%d", dir, i), Options{})
			if _, err := p.Push(t.Context(), []byte(fmt.Sprint(i)), nil); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	for i := range 6 {
		got, _, err := placeOf(t, fmt.Sprintf("oci:%s:t%d", dir, i), Options{}).Pull(t.Context())
		if err != nil || string(got) != fmt.Sprint(i) {
			t.Errorf("t%d: %q, %v", i, got, err)
		}
	}
}

// TestLayoutIsWaitedFor, but no longer than the time that was given.
func TestLayoutIsWaitedFor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plans")
	unlock, err := layout(dir).open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	_, err = placeOf(t, "oci:"+dir, Options{Timeout: 50 * time.Millisecond}).Push(t.Context(), nil, nil)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another process writes") {
		t.Errorf("%v", err)
	}
}

// TestDamagedLayouts checks the errors for layouts in which one file is cut at any byte or damaged
// in another way.
func TestDamagedLayouts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plans")
	pinned := push(t, "oci:"+dir, "a packed plan")
	place := placeOf(t, pinned, Options{})
	try := func(name string) {
		t.Helper()
		if _, _, err := place.Pull(t.Context()); err == nil || len(err.Error()) > 500 {
			t.Errorf("%s: %v", name, err)
		}
	}
	var names []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.Contains(path, "44136fa355b3678a") { // of {}, which is never read
			names = append(names, path)
		}
		return err
	})
	if err != nil || len(names) != 4 {
		t.Fatal(names, err)
	}
	for _, path := range names {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for n := range data {
			if err := os.WriteFile(path, data[:n], 0o644); err != nil {
				t.Fatal(err)
			}
			try(fmt.Sprintf("%s cut at byte %d", path, n))
		}
		for name, text := range map[string]string{"null": "null", "a list": "[]", "deep": strings.Repeat("[", 100000),
			"no text": "\x00\xff", "more": string(data) + " x", "manifests": `{"manifests":{}}`,
			"lines": `{"manifests":[1]}`, "no sum": `{"manifests":[{"digest":"` + strings.Repeat("x", 9999) + `"}]}`} {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			try(path + " is " + name)
		}
		if err := os.WriteFile(path, nil, 0o644); err == nil && os.Truncate(path, 10<<30) == nil { // of holes
			try(path + " has 10 GB")
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := place.Pull(t.Context()); err != nil {
		t.Error(err)
	}
}
