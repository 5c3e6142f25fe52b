package listen

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestParse(t *testing.T) {
	yes, no := true, false
	for text, want := range map[string]address{
		"127.0.0.1:8080":                  {tcp, "127.0.0.1:8080", 0, nil},
		"[::1]:80,tls=no":                 {tcp, "[::1]:80", 0, &no},
		":0":                              {tcp, ":0", 0, nil},
		"unix:/run/s":                     {local, "/run/s", 0o600, nil},
		"unix:/run/s,mode=0660,tls=yes":   {local, "/run/s", 0o660, &yes},
		"fd:api":                          {passed, "api", 0, nil},
		"fd:api,tls=yes":                  {passed, "api", 0, &yes},
		"localhost:http,tls=yes,tls=no":   {tcp, "localhost:http", 0, &no},
		"unix:relative,mode=777,mode=600": {local, "relative", 0o600, nil},
	} {
		got, err := parse("--listen", text)
		same := (got.secure == nil) == (want.secure == nil) && (got.secure == nil || *got.secure == *want.secure)
		if err != nil || got.kind != want.kind || got.where != want.where || got.mode != want.mode || !same {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"8080":                      "--listen 8080 is not an address; give address:port",
		"":                          "is not an address",
		"unix:":                     "the path of the socket is missing",
		"fd:":                       "the name of the socket is missing",
		"unix:/s,mode=8":            "is not a mode",
		"unix:/s,mode=0400":         "is not a mode",
		"unix:/s,mode=4777":         "is not a mode",
		"127.0.0.1:80,mode=0600":    "only unix sockets have a mode",
		"127.0.0.1:80,tls=maybe":    "unknown option tls=maybe",
		"127.0.0.1:80,127.0.0.1:81": "unknown option 127.0.0.1:81",
	} {
		if _, err := parse("--listen", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestUnixSocket checks that a socket that a killed process left behind is replaced, that one in
// use and other files are not, and that a listener removes only its own socket.
func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	killed, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	killed.(*net.UnixListener).SetUnlinkOnClose(false)
	killed.Close()
	first, err := listenUnix(path, 0o640)
	if err != nil {
		t.Fatalf("a socket left behind: %v", err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := listenUnix(path, 0o600); err == nil || !strings.Contains(err.Error(), "is in use by another program") {
		t.Errorf("a socket in use: %v", err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	second, err := listenUnix(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if first.Close(); !exists(path) {
		t.Error("closing a listener removed the socket of another one")
	}
	if second.Close(); exists(path) {
		t.Error("the socket is left behind")
	}

	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenUnix(path, 0o600); err == nil || !strings.Contains(err.Error(), "is not a socket") {
		t.Errorf("a file: %v", err)
	}
	for bad, want := range map[string]string{filepath.Join(path, "s"): "not a directory",
		filepath.Join(filepath.Dir(path), "none", "s"):              "no such file",
		filepath.Join(filepath.Dir(path), strings.Repeat("x", 120)): "too long for a socket"} {
		if _, err := listenUnix(bad, 0o600); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", bad, err, want)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestUnixSocketRace opens a socket that was left behind from several goroutines: exactly one may
// have it.
func TestUnixSocketRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	killed, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	killed.(*net.UnixListener).SetUnlinkOnClose(false)
	killed.Close()
	var wg sync.WaitGroup
	won := make(chan net.Listener, 8)
	for range cap(won) {
		wg.Go(func() {
			if ln, err := listenUnix(path, 0o600); err == nil {
				won <- ln
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Errorf("%d listeners have the socket", len(won))
	}
	for range len(won) {
		(<-won).Close()
	}
}

// TestOpen checks the errors of Open and Check, that all listeners are closed after one, and that
// profiles are not served to other machines.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		flags Flags
		want  string
	}{
		{Flags{}, "--listen is empty"},
		{Flags{listen: []string{"x"}}, "--listen x is not an address"},
		{Flags{listen: []string{":0"}, health: []string{"y"}}, "--health-listen y is not an address"},
		{Flags{listen: []string{":0"}, profile: "z"}, "--pprof z is not an address"},
		{Flags{listen: []string{":0"}, cert: "c"}, "TLS needs both files"},
		{Flags{listen: []string{":0,tls=yes"}}, "needs a certificate"},
		{Flags{listen: []string{"unix:" + dir + "/s"}, cert: dir + "/c", key: dir + "/k"}, "--tls-cert: "},
		{Flags{listen: []string{"unix:" + dir + "/s", "fd:api"}}, "systemd passed none"},
		{Flags{listen: []string{"unix:" + dir + "/s"}, profile: "0.0.0.0:0"}, "reachable from other machines"},
		{Flags{listen: []string{"unix:" + dir + "/s", "unix:" + dir + "/s"}}, "is in use by another program"},
	} {
		_, err := c.flags.Open(func(string) {})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.flags, err, c.want)
		}
		if exists(dir + "/s") {
			t.Errorf("%+v: the socket is left behind", c.flags)
		}
	}
	f := Flags{listen: []string{"127.0.0.1:0", "unix:" + dir + "/s"}, health: []string{"127.0.0.1:0"},
		profile: "localhost:0"}
	l, err := f.Open(func(s string) { t.Error(s) })
	if err != nil {
		t.Fatal(err)
	}
	if len(l.API) != 2 || len(l.Health) != 1 || l.Profile == nil || l.Pair != nil || len(l.URLs) != 2 ||
		l.URLs[0].Secure {
		t.Errorf("%+v", l)
	}
	for _, ln := range append(append(l.API, l.Health...), l.Profile) {
		ln.Close()
	}
}
