package cuda

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sandwich/microkernel/devgen"
	"sandwich/runtime/device"
	"sandwich/runtime/device/devicetest"
	"sandwich/runtime/device/hostcall"
	"sandwich/runtime/device/internal/remote"
)

// stub is the folder of a libcuda.so.1 that the test has compiled, or why there is none.
var stub struct {
	once   sync.Once
	folder string
	err    error
}

// errCompiler reports that this host has no C compiler that builds shared libraries.
var errCompiler = errors.New("no working C compiler (install gcc and libc6-dev)")

func TestMain(m *testing.M) {
	code := m.Run()
	if stub.folder != "" {
		_ = os.RemoveAll(stub.folder)
	}
	os.Exit(code)
}

func compileStub() (string, error) {
	folder, err := os.MkdirTemp("", "sandwich-cuda")
	if err != nil {
		return "", err
	}
	trial := exec.Command("cc", "-shared", "-fPIC", "-x", "c", "-", "-o", filepath.Join(folder, "trial.so"), "-lm")
	trial.Stdin = strings.NewReader("#include <math.h>\n#include <stdlib.h>\n")
	if out, err := trial.CombinedOutput(); err != nil {
		return folder, fmt.Errorf("%w: %w: %s", errCompiler, err, out)
	}
	out, err := exec.Command("cc", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-o",
		filepath.Join(folder, "libcuda.so.1"), "testdata/stub.c", "-lm").CombinedOutput()
	if err != nil {
		return folder, fmt.Errorf("%w: %s", err, out)
	}
	return folder, nil
}

// useStub makes the child processes of a test load the stub.
func useStub(t testing.TB, fault string) {
	t.Helper()
	stub.once.Do(func() { stub.folder, stub.err = compileStub() })
	switch {
	case errors.Is(stub.err, errCompiler):
		t.Skip(stub.err)
	case stub.err != nil:
		t.Fatal(stub.err)
	}
	if _, err := hostcall.Interpreter(); err != nil {
		t.Skipf("device drivers need a C library that is linked dynamically: %v", err)
	}
	t.Setenv("LD_LIBRARY_PATH", stub.folder)
	t.Setenv("STUB_FAULT", fault)
}

func open(t *testing.T) device.Device {
	t.Helper()
	d, err := driver{}.Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDevice(t *testing.T) {
	useStub(t, "")
	devicetest.Run(t, open)
}

// TestRealDevice tests the device of this host.
func TestRealDevice(t *testing.T) {
	infos, err := driver{}.List(t.Context())
	if err != nil || len(infos) == 0 {
		t.Skipf("no CUDA device; make device-check tests one: %v", err)
	}
	devicetest.Run(t, open)
	d := open(t)
	info := d.Info()
	t.Logf("%+v", info)
	if info.Exact != device.AllExact {
		t.Errorf("exact: %v", info.Exact)
	}
	b, err := d.Alloc(256, device.DeviceLocal)
	if err != nil {
		t.Fatal(err)
	}
	c := addSteps(t, d, b)
	for range 3 {
		if _, err := d.Submit(c); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("graphs: refusal %v", d.(*openDevice).graphs.refusal)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestUnregisteredMemory checks transfers where the driver cannot register memory of this process.
func TestUnregisteredMemory(t *testing.T) {
	useStub(t, "fail:cuMemHostRegister_v2:1")
	devicetest.Run(t, open)
}

func TestInfo(t *testing.T) {
	useStub(t, "")
	infos, err := driver{}.List(t.Context())
	if err != nil || len(infos) != 1 {
		t.Fatal(infos, err)
	}
	want := device.Info{Name: "stub", API: "CUDA", Driver: "12.4", Address: "0000:17:00.0", MemoryBytes: 1 << 34,
		MatrixUnit: true}
	if infos[0] != want {
		t.Errorf("%+v, want %+v", infos[0], want)
	}
	d := open(t)
	want.Exact, want.FreeBytes, want.HostVisible = device.AllExact, 1<<33, true
	want.Sharing = device.Imported
	if got := d.Info(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := (driver{}).Open(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "1 CUDA devices") {
		t.Errorf("%v", err)
	}
}

// TestOpenFaults checks faults of the driver while a device is found and opened.
func TestOpenFaults(t *testing.T) {
	for fault, want := range map[string]string{
		"fail:cuInit:100":             "cuInit: CUDA_ERROR_OF_STUB (error 100)",
		"crash:cuInit":                "signal: aborted",
		"devices:1000000":             "invalid reply: 1000000 CUDA devices",
		"devices:-1":                  "invalid reply",
		"devices:0":                   "there are 0 CUDA devices",
		"version:10020":               "it supports CUDA 10.2; kernels are PTX 7.0, which CUDA 11.0 brought",
		"capability:52":               "stub lacks compute capability 6.1 (it has 5.2)",
		"fail:cuStreamCreate:2":       "cuStreamCreate: CUDA_ERROR_OUT_OF_MEMORY",
		"crash:cuCtxSetCurrent":       "signal: aborted",
		"hang:cuMemHostRegister_v2":   "took longer than",
		"crash:cuModuleLoadDataEx":    "signal: aborted",
		"fail:cuEventSynchronize:719": "cuEventSynchronize: CUDA_ERROR_OF_STUB (error 719)",
	} {
		t.Run(fault, func(t *testing.T) {
			useStub(t, fault)
			var o remote.Options
			if strings.HasPrefix(fault, "hang:") { // other calls may take longer on a busy machine
				o.CallLimit = 200 * time.Millisecond
			}
			dr := driver{o}
			if d, err := dr.Open(t.Context(), 0); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v %v, want %q", d, err, want)
			}
		})
	}
}

// TestWithoutTensorCores checks that a card without int8 tensor cores runs kernels that need none.
func TestWithoutTensorCores(t *testing.T) {
	useStub(t, "capability:75")
	devicetest.Run(t, open)
	d := open(t)
	if d.Info().MatrixUnit {
		t.Error("a device of compute capability 7.5 reports a matrix unit")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	useStub(t, "capability:52")
	infos, err := driver{}.List(t.Context())
	if err != nil || len(infos) != 1 || infos[0].NotAutomatic() != "it lacks compute capability 6.1 (it has 5.2)" {
		t.Errorf("an old card: %+v %v", infos, err)
	}
}

// TestRefused checks kernels that the driver does not compile or whose workgroups are too large.
func TestRefused(t *testing.T) {
	useStub(t, "")
	d := open(t)
	defer func() { _ = d.Close() }()
	b := devgen.NewBuilder("refused", 64)
	b.Store(b.Binding("to", devgen.Write), b.Builtin(devgen.LocalIndex), b.U(1))
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Compile(k)
	if !errors.Is(err, device.ErrRefused) || !strings.Contains(err.Error(), "the stub does not like it") {
		t.Errorf("%v", err)
	}
	b = devgen.NewBuilder("large", 1024) // the stub has 512
	b.Store(b.Binding("to", devgen.Write), b.Builtin(devgen.LocalIndex), b.U(1))
	if k, err = b.Build(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Compile(k); !errors.Is(err, device.ErrRefused) {
		t.Errorf("%v", err)
	}
	if d.Err() != nil {
		t.Error(d.Err())
	}
}

// TestNoDriver checks the error on hosts without the library.
func TestNoDriver(t *testing.T) {
	defer func(saved []string) { libraries = saved }(libraries)
	if _, err := hostcall.Interpreter(); err != nil {
		t.Skipf("device drivers need a C library that is linked dynamically: %v", err)
	}
	for library, want := range map[string]string{
		"libno-such-cuda.so.1": "no CUDA driver on this host",
		"libc.so.6":            "cuInit",
	} {
		libraries = []string{library}
		if _, err := (driver{}).List(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", library, err, want)
		}
	}
}
