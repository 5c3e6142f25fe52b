package oci

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestIndex pushes plans and an index of them to a registry and to a layout, and reads both back.
func TestIndex(t *testing.T) {
	_, host := newRegistry(t)
	for _, name := range []string{host + "/plans", "oci:" + t.TempDir()} {
		place := placeOf(t, name+":index", Options{})
		for _, tag := range []string{"b", "a"} {
			push(t, name+":"+tag, "plan "+tag)
		}
		var list []Listed
		for _, tag := range []string{"a", "b"} {
			packed, l, err := place.WithTag(tag).PullPlan(t.Context())
			if err != nil || string(packed) != "plan "+tag || l.Size == 0 {
				t.Fatalf("%s: %q, %+v, %v", name, packed, l, err)
			}
			l.Labels = map[string]string{"tag": tag}
			list = append(list, l)
		}
		pinned, err := place.PushIndex(t.Context(), list)
		if err != nil || !strings.HasPrefix(pinned, name+"@sha256:") {
			t.Fatalf("%s: %s, %v", name, pinned, err)
		}
		tags, err := place.Tags(t.Context())
		if want := []string{"a", "b", "index"}; err != nil || !reflect.DeepEqual(tags, want) {
			t.Errorf("%s has the tags %v, %v", name, tags, err)
		}
		got, err := place.PullIndex(t.Context())
		if err != nil || len(got) != 2 || got[1].Labels["tag"] != "b" || got[1].Digest != list[1].Digest {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		packed, err := place.PullDigest(t.Context(), got[0].Digest)
		if err != nil || string(packed) != "plan a" {
			t.Errorf("%s: %q, %v", name, packed, err)
		}
		if packed, _, err := place.PullPlan(t.Context()); packed != nil || err != nil {
			t.Errorf("%s: an index is a plan: %q, %v", name, packed, err)
		}
		if _, err := place.WithTag("a").PullIndex(t.Context()); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: a plan is an index: %v", name, err)
		}
		if _, err := place.WithTag("x").PullIndex(t.Context()); !errors.Is(err, ErrMissing) {
			t.Errorf("%s: a missing tag: %v", name, err)
		}
	}
	_, empty := newRegistry(t)
	if _, err := placeOf(t, empty+"/plans", Options{}).Tags(t.Context()); !errors.Is(err, ErrMissing) {
		t.Errorf("a missing repository: %v", err)
	}
}

// TestParseIndexRefuses checks indexes that are not acceptable.
func TestParseIndexRefuses(t *testing.T) {
	good, err := EncodeIndex([]Listed{{Digest: "sha256:" + strings.Repeat("ab", 32), Size: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := ParseIndex(good); err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	entry := fmt.Sprintf(`{"mediaType":"x","size":1,"digest":"sha256:%s"}`, strings.Repeat("ab", 32))
	for name, c := range map[string]struct{ old, new, want string }{
		"no JSON":     {"{", "", "not valid JSON"},
		"another":     {indexArtifact, "application/x", `of the type "application/x"`},
		"a manifest":  {"image.index", "image.manifest", "not an index of plans"},
		"10 GB":       {`"size":1`, `"size":10000000000`, "the limit is"},
		"below zero":  {`"size":1`, `"size":-1`, "the limit is"},
		"sha512":      {"sha256:", "sha512:", "is not a sha256 digest"},
		"a path":      {"sha256:ab", "sha256:../../etc", "is not a sha256 digest"},
		"many plans":  {`"manifests":[`, `"manifests":[` + strings.Repeat(entry+",", MaxPlans), "plans, more than"},
		"wrong types": {`"manifests":[`, `"manifests":[1,`, "not valid JSON"},
	} {
		bad := strings.Replace(string(good), c.old, c.new, 1)
		if bad == string(good) {
			t.Fatalf("%s: %q does not occur in %s", name, c.old, good)
		}
		if _, err := ParseIndex([]byte(bad)); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q in %v", name, c.want, err)
		}
	}
	if _, err := EncodeIndex(make([]Listed, MaxPlans+1)); !errors.Is(err, ErrRefused) {
		t.Errorf("too many plans: %v", err)
	}
}
