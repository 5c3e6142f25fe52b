package nvml

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/runtime/device/hostcall"
)

// library compiles testdata/nvml.c, or skips the test where that is not possible.
func library(t *testing.T) string {
	t.Helper()
	if _, err := hostcall.Interpreter(); err != nil {
		t.Skipf("device drivers need a C library that is linked dynamically: %v", err)
	}
	file := filepath.Join(t.TempDir(), "libnvml.so")
	trial := exec.Command("cc", "-shared", "-fPIC", "-x", "c", "-", "-o", file)
	trial.Stdin = strings.NewReader("#include <stdlib.h>\n")
	if out, err := trial.CombinedOutput(); err != nil {
		t.Skipf("no working C compiler (install gcc and libc6-dev): %v: %.300s", err, out)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", file, "testdata/nvml.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

// TestCounter reads the counters of devices that count, that have none and whose library crashes.
func TestCounter(t *testing.T) {
	file := library(t)
	for name, c := range map[string]struct {
		address string
		want    []float64
		fails   string
	}{
		"counts":      {"0000:01:00.0", []float64{5, 6.5, 8}, ""},
		"not counted": {"0000:02:00.0", nil, "Not Supported"},
		"crash":       {"0000:03:00.0", []float64{5}, "signal: aborted"},
		"unknown":     {"0000:09:00.0", nil, "Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			counter, err := open([]string{"libmissing.so", file}, c.address)
			if err == nil {
				defer func() {
					if err := counter.Close(); err != nil {
						t.Error(err)
					}
				}()
			}
			for _, want := range c.want {
				var got float64
				if err == nil {
					got, err = counter.Joules()
				}
				if got != want || err != nil {
					t.Errorf("%g J, %v; want %g", got, err, want)
				}
			}
			if err == nil && c.fails != "" {
				_, err = counter.Joules()
			}
			if c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("error %v, want %q", err, c.fails)
			}
		})
	}
}

// TestNoLibrary checks the error where NVML is not installed or lacks a function.
func TestNoLibrary(t *testing.T) {
	if _, err := hostcall.Interpreter(); err != nil {
		t.Skipf("device drivers need a C library that is linked dynamically: %v", err)
	}
	for library, want := range map[string]string{"libmissing.so": "no NVML on this host", "libc.so.6": "too old"} {
		if _, err := open([]string{library}, "0000:01:00.0"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", library, err, want)
		}
	}
}
