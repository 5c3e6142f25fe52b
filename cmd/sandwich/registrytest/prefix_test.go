package registrytest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Keys of the test, of no use elsewhere.
const (
	privateKey = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIA4XstFED7eWWyCnB5y3aHuKUDQSoBgA5i3v+r/tnz9t
-----END PRIVATE KEY-----
`
	publicKey = `-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAqTINZJb3KqLVeY15xewpQf6U09Oohjz92zFPcONBAMY=
-----END PUBLIC KEY-----
`
	otherKey = `-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAmB55jURYig0beVmfdtabqzBBVCm/sLdsRmDK9313zdQ=
-----END PUBLIC KEY-----
`
)

// warm computes a text and stores it in a folder; it returns the name of the prefix.
func (p *program) warm(t *testing.T, folder string) (name string) {
	t.Helper()
	out, code := p.run(t, "cache", "warm", "-t", "1", "--compute", "f32", "--attention", "f32", "--cache-dir", folder,
		"tale.txt")
	names := regexp.MustCompile(`(?m)^([0-9a-f]{64}) \d+ tokens$`).FindStringSubmatch(out)
	if code != 0 || names == nil {
		t.Fatalf("%d: %s", code, out)
	}
	return names[1]
}

// TestPushAndPullPrefix pushes a signed prefix and pulls it by tag and digest, with the right key,
// another one, none and --trust. What was pulled is compared at its first use and then used.
func TestPushAndPullPrefix(t *testing.T) {
	p, host := newProgram(t), startRegistry(t, "")
	for name, text := range map[string]string{"one.pem": privateKey, "one.pub": publicKey, "two.pub": otherKey,
		"tale.txt": strings.Repeat("Once upon a time a cat had a red ball, and a dog ran after it. ", 12)} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	name, place := p.warm(t, "store"), host+"/prefixes/tale:1"
	pinned, code := p.run(t, "cache", "push", name[:12], place, "--cache-dir", "store", "--sign", "one.pem")
	if code != 0 || !strings.HasPrefix(pinned, host+"/prefixes/tale@sha256:") {
		t.Fatalf("%d: %s", code, pinned)
	}
	if again, _ := p.run(t, "cache", "push", name, place, "--cache-dir", "store", "--sign", "one.pem"); again != pinned {
		t.Errorf("pushed again: %s, %s", pinned, again)
	}
	for _, c := range []struct {
		from  string
		flags []string
		code  int
		text  string
	}{
		{place, []string{"--key", "two.pub"}, 2, "did not sign"},
		{place, nil, 2, "give --key"},
		{host + "/prefixes/tale:2", []string{"--trust"}, 1, "has no such repository or tag"},
		{place, []string{"--key", "one.pub"}, 0, pinned},
		{pinned, []string{"--trust"}, 0, pinned},
	} {
		folder := filepath.Join(t.TempDir(), "pulled")
		args := append([]string{"cache", "pull", c.from, "--cache-dir", folder}, c.flags...)
		out, code := p.run(t, args...)
		if code != c.code || !strings.Contains(out, c.text) {
			t.Errorf("%q: %d: %s, want %d: %s", args, code, out, c.code, c.text)
		}
		list, _ := p.run(t, "cache", "ls", "--cache-dir", folder, "--format", "json")
		if strings.Contains(list, name) != (code == 0) {
			t.Errorf("%q: the folder has %s", args, list)
		}
		if code != 0 {
			continue
		}
		marks, err := filepath.Glob(filepath.Join(folder, "objects", "*", "*.new"))
		if err != nil || len(marks) == 0 {
			t.Errorf("no pulled block is marked as not compared: %v", err)
		}
		if again := p.warm(t, folder); again != name {
			t.Errorf("computed prefix %s, pulled %s", again, name)
		}
		if marks, _ = filepath.Glob(filepath.Join(folder, "objects", "*", "*.new")); len(marks) != 0 {
			t.Errorf("%d blocks were not compared at their first use", len(marks))
		}
	}
}
