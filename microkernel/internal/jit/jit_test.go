//go:build linux && amd64

package jit

import (
	"encoding/binary"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// addOne is: add qword ptr [rdi], 1; ret.
var addOne = []byte{0x48, 0x83, 0x07, 0x01, 0xC3}

// setTo is: mov rax, v; mov [rdi], rax; ret.
func setTo(v uint64) []byte {
	c := binary.LittleEndian.AppendUint64([]byte{0x48, 0xB8}, v)
	return append(c, 0x48, 0x89, 0x07, 0xC3)
}

func TestLoadAndCall(t *testing.T) {
	var a arena
	defer func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	var all []Func
	for batch := range uint64(5) {
		var codes [][]byte
		for i := range uint64(100) {
			codes = append(codes, setTo(batch*1000+i))
		}
		fs, err := a.Load(codes...)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fs...)
	}
	for i, f := range all {
		var x uint64
		f.Call(unsafe.Pointer(&x))
		if want := uint64(i/100*1000 + i%100); x != want || !f.Valid() || f.entry%64 != 0 {
			t.Fatalf("function %d at %#x returned %d, want %d", i, f.entry, x, want)
		}
	}
	if len(a.chunks) != 1 {
		t.Errorf("%d chunks for 500 small functions", len(a.chunks))
	}
}

// TestWXorX reads the permissions of the process's own mappings.
func TestWXorX(t *testing.T) {
	var a arena
	defer func() { _ = a.Close() }()
	if _, err := a.Load(addOne); err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skipf("needs Linux with /proc mounted: %v", err)
	}
	executable := 0
	for _, l := range strings.Split(string(maps), "\n") {
		f := strings.Fields(l)
		if len(f) < 2 || !strings.Contains(f[1], "x") {
			continue
		}
		executable++
		if strings.Contains(f[1], "w") {
			t.Errorf("writable and executable: %s", l)
		}
	}
	if executable == 0 {
		t.Error("no executable mapping found")
	}
}

// TestUnderMDWE runs this test binary again under PR_SET_MDWE, where written pages may not become
// executable.
func TestUnderMDWE(t *testing.T) {
	const env = "SANDWICH_TEST_MDWE"
	if os.Getenv(env) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestUnderMDWE$", "-test.v")
		cmd.Env = append(os.Environ(), env+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if strings.Contains(string(out), "SKIP") {
			t.Skipf("%s", out)
		}
		return
	}
	const prSetMDWE, refuseExecGain = 65, 1
	runtime.LockOSThread()
	if err := unix.Prctl(prSetMDWE, refuseExecGain, 0, 0, 0); err != nil {
		t.Skipf("PR_SET_MDWE is not supported; needs Linux 6.3: %v", err)
	}
	var a arena
	for i := range uint64(3) {
		fs, err := a.Load(addOne, setTo(i))
		if err != nil {
			t.Fatal(err)
		}
		x := uint64(41)
		fs[0].Call(unsafe.Pointer(&x))
		if x != 42 {
			t.Fatalf("add gave %d", x)
		}
		fs[1].Call(unsafe.Pointer(&x))
		if x != i {
			t.Fatalf("set gave %d", x)
		}
	}
}

// TestSchedulerLives checks that a goroutine that only calls generated code does not block the
// garbage collector.
func TestSchedulerLives(t *testing.T) {
	var a arena
	defer func() { _ = a.Close() }()
	// mov rax, 30000; dec rax; jnz -5; ret
	spin := []byte{0x48, 0xC7, 0xC0, 0x30, 0x75, 0, 0, 0x48, 0xFF, 0xC8, 0x75, 0xFB, 0xC3}
	fs, err := a.Load(spin)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for range 100 {
					fs[0].Call(nil)
				}
			}
		})
	}
	collected := make(chan struct{})
	go func() {
		for range 10 {
			runtime.GC()
		}
		close(collected)
	}()
	select {
	case <-collected:
	case <-time.After(60 * time.Second):
		t.Error("ten collections did not finish within a minute")
	}
	close(stop)
	wg.Wait()
}

func BenchmarkCall(b *testing.B) {
	var a arena
	fs, err := a.Load([]byte{0xC3})
	if err != nil {
		b.Fatal(err)
	}
	var x uint64
	for b.Loop() {
		fs[0].Call(unsafe.Pointer(&x))
	}
}
