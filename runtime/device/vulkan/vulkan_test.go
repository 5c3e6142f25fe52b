package vulkan

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/devgen/spirv"
	"sandwich/runtime/device"
	"sandwich/runtime/device/codecache"
	"sandwich/runtime/device/devicetest"
	"sandwich/runtime/device/hostcall"
	"sandwich/runtime/device/internal/remote"
)

// open opens the first device, or skips the test where there is none.
func open(t *testing.T, o remote.Options) *logicalDevice {
	t.Helper()
	dr := driver{options: o}
	if infos, err := dr.List(t.Context()); err != nil || len(infos) == 0 {
		t.Skipf("no Vulkan device (install mesa-vulkan-drivers): %v", err)
	}
	d, err := dr.Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d.(*logicalDevice)
}

func TestDevice(t *testing.T) {
	devicetest.Run(t, func(t *testing.T) device.Device { return open(t, remote.Options{}) })
}

// TestExactness checks that every class is exact, natively or repaired.
func TestExactness(t *testing.T) {
	d := open(t, remote.Options{})
	info := d.Info()
	t.Logf("%+v", info)
	if info.Exact != device.AllExact {
		t.Errorf("exact: %v; repaired: %v", info.Exact, info.Repaired)
	}
	if info.Software != strings.Contains(info.Name, "llvmpipe") || info.Software != (info.NotAutomatic() != "") {
		t.Errorf("%s computes on the cores: %v; not automatic: %q", info.Name, info.Software, info.NotAutomatic())
	}
	if info.Name == "" || info.MemoryBytes == 0 || info.FreeBytes > info.MemoryBytes {
		t.Errorf("%+v", info)
	}
}

// TestDetect checks that a host whose only driver computes on the cores has no device.
func TestDetect(t *testing.T) {
	t.Setenv("VK_DRIVER_FILES", "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json")
	if err := (driver{}).Detect(); err == nil {
		t.Error("a host without a driver for a GPU may have a device")
	}
}

// TestWithoutImport checks transfers by mapped memory of the driver, and memory that is shared by
// export.
func TestWithoutImport(t *testing.T) {
	open(t, remote.Options{}) // skips
	devicetest.Run(t, func(t *testing.T) device.Device {
		d, err := driver{withoutImport: true}.Open(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if d.(*logicalDevice).stage.memcpy == 0 {
			t.Error("the stage is imported")
		}
		if how := d.Info().Sharing; how != device.Exported {
			t.Errorf("sharing by %s", how)
		}
		return d
	})
}

// TestWithoutSharing checks that a device that shares no memory says so.
func TestWithoutSharing(t *testing.T) {
	open(t, remote.Options{}) // skips
	d, err := driver{withoutImport: true, withoutExport: true}.Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Alloc(64, device.Shared); err == nil || !strings.Contains(err.Error(), "cannot share memory") {
		t.Errorf("%v", err)
	}
	if how := d.Info().Sharing; how != device.NotShared {
		t.Errorf("sharing by %s", how)
	}
}

// TestValidationLayer runs every call with the validation layer, which must not report an error.
func TestValidationLayer(t *testing.T) {
	const layer = "VK_LAYER_KHRONOS_validation"
	t.Setenv("VK_INSTANCE_LAYERS", layer)
	in, err := driver{}.start(t.Context())
	if err != nil {
		t.Skipf("no validation layer (install vulkan-validationlayers): %v", err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	var d *logicalDevice
	devicetest.Run(t, func(t *testing.T) device.Device {
		d = open(t, remote.Options{})
		t.Cleanup(func() {
			if out := d.Process.Output(); strings.Contains(out, "Validation Error") || strings.Contains(out, "VUID") {
				t.Errorf("the validation layer reports: %s", out)
			}
		})
		return d
	})
}

// TestMissingFeatures checks that a driver without the needed features is refused by their names.
func TestMissingFeatures(t *testing.T) {
	p := &physical{name: "old GPU", missing: []string{"shaderInt64", "Vulkan 1.3 (it has 1.2.0)"}}
	const want = "old GPU lacks shaderInt64, Vulkan 1.3 (it has 1.2.0)"
	if _, err := (&instance{}).open(p); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// TestNoDriver checks the error on hosts without a Vulkan driver.
func TestNoDriver(t *testing.T) {
	open(t, remote.Options{}) // skips
	for _, name := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
		t.Setenv(name, "/nonexistent.json")
	}
	if _, err := (driver{}).List(t.Context()); err == nil || !strings.Contains(err.Error(), "no Vulkan driver") {
		t.Errorf("List: %v", err)
	}
	if _, err := (driver{}).Open(t.Context(), 0); err == nil {
		t.Error("opened")
	}
}

func TestNoSuchDevice(t *testing.T) {
	open(t, remote.Options{}) // skips
	if _, err := (driver{}).Open(t.Context(), 15); err == nil || !strings.Contains(err.Error(), "Vulkan devices") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (driver{}).List(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestFaults checks that a driver process that is killed, stopped or crashes loses the device in
// the middle of a submission, and that this process goes on.
func TestFaults(t *testing.T) {
	for name, fault := range map[string]func(*testing.T, *logicalDevice){
		"killed":  func(_ *testing.T, d *logicalDevice) { _ = syscall.Kill(d.Process.PID(), syscall.SIGKILL) },
		"stopped": func(_ *testing.T, d *logicalDevice) { _ = syscall.Kill(d.Process.PID(), syscall.SIGSTOP) },
		"crash": func(_ *testing.T, d *logicalDevice) {
			_ = d.With(d.Main, func(f *hostcall.Frame) error {
				return d.functions.void(f, "vkDestroyBuffer", 8, 8, 8) // not a device
			})
		},
		"endless": func(*testing.T, *logicalDevice) {},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, remote.Options{})
			d.Stall = 300 * time.Millisecond // self-tests may take longer on a busy machine
			program, err := d.Compile(longKernel(t))
			if err != nil {
				t.Fatal(err)
			}
			b, err := d.Alloc(256, device.DeviceLocal)
			if err != nil {
				t.Fatal(err)
			}
			launch := device.Launch{Program: program, Groups: [3]int{1 << 30, 1, 1},
				Buffers: []device.Slice{{Buffer: b}}, Push: []uint32{60_000}} // lavapipe runs at most 65,535
			commands, err := d.Record(launch)
			if err != nil {
				t.Fatal(err)
			}
			ticket, err := d.Submit(commands)
			if err != nil {
				t.Fatal(err)
			}
			fault(t, d)
			if err := d.Wait(t.Context(), ticket); !errors.Is(err, device.ErrLost) {
				t.Errorf("Wait: %v", err)
			}
			devicetest.WantLost(t, d, launch, commands, b)
			if err := errors.Join(commands.Free(), program.Free(), b.Free()); err != nil {
				t.Errorf("Free: %v", err)
			}
		})
	}
}

// longKernel returns a kernel that counts to a push word.
func longKernel(t *testing.T) *devgen.Kernel {
	b := devgen.NewBuilder("count", 64)
	to := b.Binding("to", devgen.ReadWrite)
	at := b.Builtin(devgen.LocalIndex)
	b.Range(b.Push("steps", devgen.U32), func(i devgen.Value) {
		b.Store(to, at, b.Xor(b.Load(to, at), b.Mul(i, i)))
	})
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestNothingLeaks opens and closes devices and checks that no descriptor remains.
func TestNothingLeaks(t *testing.T) {
	open(t, remote.Options{})
	before := descriptors(t)
	for range 2 {
		d, err := driver{}.Open(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors are open, %d before", after, before)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

// TestCodes checks that compiled kernels are stored, that a device that finds them, or finds code
// that is not its own, gives the same results, and that code on which a driver crashes is not used
// again.
func TestCodes(t *testing.T) {
	open(t, remote.Options{}) // skips
	dir := t.TempDir()
	files := func() []string {
		list, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	b := devgen.NewBuilder("count", 64)
	b.Store(b.Binding("to", devgen.Write), b.Builtin(devgen.LocalIndex), b.Builtin(devgen.LocalIndex))
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	before := 0
	for _, run := range []string{"empty", "stored", "foreign"} {
		store, err := codecache.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		opened, err := driver{codes: store}.Open(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		d := opened.(*logicalDevice)
		words, err := spirv.Emit(k, d.spirv)
		if err != nil {
			t.Fatal(err)
		}
		if run == "foreign" {
			store.Put(d.keyOf(words), []byte("no code of a driver, which must ignore it"))
		}
		if err := device.Verify(t.Context(), d, k, [3]int{1, 1, 1}, [][]byte{make([]byte, 256)}, nil); err != nil {
			t.Errorf("%s: %v", run, err)
		}
		if code := store.Take(d.keyOf(words)); len(code) == 0 {
			t.Errorf("%s: the code of a kernel is not stored", run)
		} else {
			store.Put(d.keyOf(words), code)
		}
		if n := len(files()); n == 0 || run == "stored" && n != before {
			t.Errorf("%s: %d files, before %d", run, n, before)
		}
		before = len(files())
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
