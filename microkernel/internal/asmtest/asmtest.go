// Package asmtest has the helpers that the tests of the two encoders share: golden listings, and
// llvm-mc as an independent check of every encoding. Only tests import it.
package asmtest

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Golden compares got with the file at path, line by line, and ends the test at the first that
// differs. With -update it writes the file first.
func Golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wl, gl := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range min(len(wl), len(gl)) {
		if wl[i] != gl[i] {
			t.Fatalf("line %d:\n got %s\nwant %s", i+1, gl[i], wl[i])
		}
	}
	if len(wl) != len(gl) {
		t.Fatalf("%d lines, want %d", len(gl), len(wl))
	}
}

// LLVM is llvm-mc with the arguments that make it encode one instruction set.
type LLVM struct {
	path, header string
	args         []string
}

// FindLLVM looks for llvm-mc. The header is put before the instructions. Without llvm-mc the test
// is skipped; the golden bytes, which were compared with llvm-mc when they were written, are still
// checked.
func FindLLVM(t *testing.T, header string, args ...string) LLVM {
	t.Helper()
	for _, name := range []string{"llvm-mc", "llvm-mc-14"} {
		if path, err := exec.LookPath(name); err == nil {
			return LLVM{path, header, append(args, "-show-encoding")}
		}
	}
	t.Skip("no llvm-mc on PATH: the golden bytes stand alone")
	return LLVM{}
}

// maxListed is how many wrong encodings one comparison prints: one wrong field makes hundreds.
const maxListed = 30

// Compare encodes the lines, one instruction each, and reports every one whose bytes are not those
// in want.
func (l LLVM) Compare(t *testing.T, lines []string, want [][]byte) {
	t.Helper()
	got, errs := l.encode(t, lines)
	if len(got) != len(want) || len(lines) != len(want) {
		t.Fatalf("llvm-mc encoded %d of %d instructions\n%.2000s", len(got), len(want), errs)
	}
	bad := 0
	for i, b := range got {
		if bytes.Equal(b, want[i]) {
			continue
		}
		if bad++; bad <= maxListed {
			t.Errorf("%-60s ours % x\n%66sllvm % x", lines[i], want[i], "", b)
		}
	}
	t.Logf("%d instructions, %d differ", len(got), bad)
}

// encode returns the bytes of each instruction and what llvm-mc complained of.
func (l LLVM) encode(t *testing.T, lines []string) (codes [][]byte, complaints string) {
	t.Helper()
	cmd := exec.Command(l.path, l.args...)
	cmd.Stdin = strings.NewReader(l.header + strings.Join(lines, "\n") + "\n")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("llvm-mc: %v\n%.3000s", err, errs.String())
	}
	for line := range strings.Lines(out.String()) {
		_, enc, ok := strings.Cut(line, "encoding: [")
		if !ok {
			continue
		}
		enc = strings.TrimSuffix(strings.TrimSpace(enc), "]")
		b, err := hex.DecodeString(strings.NewReplacer("0x", "", ",", "").Replace(enc))
		if err != nil {
			t.Fatalf("llvm-mc printed %q", line)
		}
		codes = append(codes, b)
	}
	return codes, errs.String()
}
