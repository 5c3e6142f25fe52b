package main

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestServersShareDevice checks two servers that want one device: the second runs on the cores with
// one sentence that has the numbers, and a third one uses the memory that the first gave back. All
// answer alike.
func TestServersShareDevice(t *testing.T) {
	folder, data := t.TempDir(), t.TempDir()
	if err := saveRates(data, "sim:0=40"); err != nil {
		t.Fatal(err)
	}
	serve := func(memory uint64) *served {
		t.Helper()
		cmd := exec.Command("sandwich", "serve", "--listen", "127.0.0.1:0", "--device", "auto", "--device-phases",
			"decode", "--attention", "f32", "--compute", "int8", "--ctx", "64", "--parallel", "1")
		cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+data, "SIMULATED_DEVICES=1", "SIMULATED_AUTO=0",
			"SIMULATED_FOLDER="+folder, "SIMULATED_MEMORY="+strconv.FormatUint(memory, 10))
		return launchServer(t, cmd)
	}
	held := func(s *served) uint64 {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(folder, strconv.Itoa(s.cmd.Process.Pid)))
		if errors.Is(err, fs.ErrNotExist) {
			return 0
		}
		n, parseErr := strconv.ParseUint(string(text), 10, 64)
		if err := errors.Join(err, parseErr); err != nil {
			t.Fatal(err)
		}
		return n
	}
	answer := func(s *served) string {
		t.Helper()
		code, text, _ := s.do("POST", "/v1/completions", `{"prompt":"the king","max_tokens":2,"temperature":0}`, "")
		if code != http.StatusOK {
			t.Fatalf("status %d %s", code, text)
		}
		_, text, _ = strings.Cut(text, `"text":`)
		text, _, _ = strings.Cut(text, ",")
		return text
	}
	const refusal = "the device has too little memory"
	first := serve(1 << 40)
	need := held(first)
	if need == 0 {
		t.Fatalf("the first server does not use the device: %s", &first.stderr)
	}
	second := serve(held(first) + 4096)
	want := answer(first)
	if got := answer(second); got != want {
		t.Errorf("the second server answers %s, the first %s", got, want)
	}
	if n := held(second); n != 0 {
		t.Errorf("the second server holds %d bytes", n)
	}
	second.stop() // its standard error is complete
	if text := second.stderr.String(); strings.Count(text, refusal) != 1 || !strings.Contains(text, "4.0 KiB of ") ||
		!strings.Contains(text, "; the cores run both phases") {
		t.Errorf("the second server: %s", text)
	}
	first.stop()
	third := serve(2 * need) // loading takes more than serving
	if got := answer(third); got != want {
		t.Errorf("the third server answers %s, the first %s", got, want)
	}
	if n := held(third); n < need {
		t.Errorf("the third server holds %d bytes, the first held %d", n, need)
	}
	third.stop()
	if text := third.stderr.String(); strings.Contains(text, refusal) {
		t.Errorf("the third server: %s", text)
	}
}
