package hostcall

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// TestExecutableGolden compares the emitted executables and their listings with golden files, so
// that each change of the code that runs in the child is visible in review.
func TestExecutableGolden(t *testing.T) {
	for arch, loader := range map[string]string{
		"amd64": "/lib64/ld-linux-x86-64.so.2",
		"arm64": "/lib/ld-linux-aarch64.so.1",
	} {
		t.Run(arch, func(t *testing.T) {
			file, listing, err := build(arch, loader)
			if err != nil {
				t.Fatal(err)
			}
			text := "# The child's executable for " + arch + " with the loader " + loader + ".\n" +
				"# First its code: offset, bytes, instruction; then the whole file.\n\n" + listing + "\n" + dump(file)
			path := filepath.Join("testdata", arch+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if text != string(want) {
				t.Errorf("the executable differs from %s; if that is intended, run the test with -update", path)
			}
		})
	}
}

// dump returns a hex dump without lines of zeros.
func dump(file []byte) string {
	var kept []string
	for _, l := range strings.SplitAfter(hex.Dump(file), "\n") {
		if !strings.Contains(l, "00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00") {
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, "")
}

// TestExecutableIsELF checks the file with the standard library's reader.
func TestExecutableIsELF(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		file, err := Executable(arch, "/lib/loader.so")
		if err != nil {
			t.Fatal(err)
		}
		f, err := elf.NewFile(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if f.Machine != machine || f.Type != elf.ET_DYN {
			t.Errorf("%s: machine %v, type %v", arch, f.Machine, f.Type)
		}
		for _, name := range []string{"libc.so.6", "dlopen", "/lib/loader.so", processName} {
			if !bytes.Contains(file, []byte(name+"\x00")) {
				t.Errorf("%s: the file lacks %s", arch, name)
			}
		}
		for _, p := range f.Progs {
			if p.Flags&elf.PF_W != 0 && p.Flags&elf.PF_X != 0 {
				t.Errorf("%s: segment %v is writable and executable", arch, p.Type)
			}
		}
	}
}

func TestExecutableRefused(t *testing.T) {
	if _, err := Executable("riscv64", "/lib/ld.so"); err == nil || !strings.Contains(err.Error(), "riscv64") {
		t.Errorf("riscv64: %v", err)
	}
	if _, err := Executable("amd64", strings.Repeat("x", 8192)); err == nil {
		t.Error("an interpreter path of 8192 bytes was accepted")
	}
}
