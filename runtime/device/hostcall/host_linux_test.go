package hostcall

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be the parent that TestParentDeath kills.
func TestMain(m *testing.M) {
	if os.Getenv("HOSTCALL_TEST_PARENT") == "" {
		os.Exit(m.Run())
	}
	p, err := Start(Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.PID())
	select {}
}

// TestParentDeath checks that the child ends when its parent is killed.
func TestParentDeath(t *testing.T) {
	if _, err := Interpreter(); err != nil {
		t.Skipf("device drivers need a C library that is linked dynamically: %v", err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "HOSTCALL_TEST_PARENT=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		_, err = fmt.Sscan(line, &pid)
	}
	if err != nil {
		t.Fatal(line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	for deadline := time.Now().Add(2 * time.Minute); running(pid); {
		if time.Now().After(deadline) {
			t.Fatalf("the child %d runs after its parent was killed", pid)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// running reports whether a process exists and is not a zombie.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

// TestInterpreter compares the loader with the one that the kernel mapped for a program of this
// host. Without this test, a loader that is not found would only skip the tests that need it.
func TestInterpreter(t *testing.T) {
	const cat = "/bin/cat"
	f, err := elf.Open(cat)
	if err != nil {
		t.Skipf("needs Linux with %s: %v", cat, err)
	}
	f.Close()
	if uint16(f.Machine) != machines[runtime.GOARCH].code {
		t.Skipf("%s is a program of %s; run on %s", cat, f.Machine, runtime.GOARCH)
	}
	maps, err := exec.Command(cat, "/proc/self/maps").Output()
	if err != nil {
		t.Skipf("needs Linux with /proc mounted: %v", err)
	}
	if !strings.Contains(string(maps), "/ld-") {
		t.Skipf("needs a %s that is linked dynamically", cat)
	}
	path, err := Interpreter()
	if err != nil {
		t.Fatal(err)
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil || !strings.Contains(string(maps), target) {
		t.Errorf("the loader is %s (%s), %v; %s has\n%s", path, target, err, cat, maps)
	}
}

// TestMusl runs the executable with musl's loader.
func TestMusl(t *testing.T) {
	loaders := machines[runtime.GOARCH].loaders
	if len(loaders) == 0 {
		t.Skipf("device drivers are not supported on %s", runtime.GOARCH)
	}
	musl := loaders[len(loaders)-1]
	if _, err := os.Stat(musl); err != nil {
		t.Skip("the musl C library is not installed: install musl")
	}
	image, err := Executable(runtime.GOARCH, musl)
	if err != nil {
		t.Fatal(err)
	}
	p, err := start(Options{}, runtime.GOARCH, func(files []*os.File, p *Process) (*os.Process, error) {
		return spawn(image, "", files, &p.output, p.onEnd)
	})
	if err != nil {
		t.Fatal(err)
	}
	checkCalls(t, p)
	checkShare(t, p)
	if _, err := p.Load("libno-such.so"); err == nil || !strings.Contains(err.Error(), "libno-such.so") {
		t.Errorf("Load: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestNotExecutable checks the reason when the loader does not exist.
func TestNotExecutable(t *testing.T) {
	image, err := Executable("amd64", "/nonexistent/ld.so")
	if err != nil {
		t.Fatal(err)
	}
	_, err = start(Options{}, "amd64", func(files []*os.File, p *Process) (*os.Process, error) {
		return spawn(image, t.TempDir(), files, &p.output, p.onEnd)
	})
	if !errors.Is(err, syscall.ENOENT) || !strings.HasPrefix(err.Error(), "cannot start a driver process") {
		t.Errorf("%v", err)
	}
}

// TestKeptRegion checks that a region of ShareKept remains after Close, until Free.
func TestKeptRegion(t *testing.T) {
	p := startTest(t, Options{})
	r, err := p.ShareKept(100)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call(p.Main(), symbol(t, p, "memset"), r.Addr(), 7, 100); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	r.Bytes()[1] = 9
	if b := r.Bytes(); b[0] != 7 || b[1] != 9 || b[99] != 7 {
		t.Errorf("% x", b[:100])
	}
	if err := errors.Join(r.Free(), r.Free()); err != nil {
		t.Error(err)
	}
}

// TestKeptRegionAlignment checks that large regions begin at a boundary of huge pages and do not
// overlap.
func TestKeptRegionAlignment(t *testing.T) {
	p := startTest(t, Options{})
	end := uint64(0)
	for _, size := range []int{100, hugePage + 1, 100, hugePage, hugePage} {
		r, err := p.ShareKept(size)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Free() })
		if at := r.Addr(); at < end || size >= hugePage && at%hugePage != 0 {
			t.Errorf("%d bytes at %#x, after %#x", size, at, end)
		}
		end = r.Addr() + uint64(len(r.Bytes()))
	}
}

// TestMapFile checks that this process maps a file of the child, also after the child ended, unless
// the child could shorten it or it is empty.
func TestMapFile(t *testing.T) {
	p := startTest(t, Options{})
	const size = 8192
	file := func(size, seals uint64) (fd uint64) {
		const allowSealing, addSeals = 2, 1033
		err := p.Main().With(func(f *Frame) (err error) {
			if fd, err = f.Call(symbolIn(p, f, "memfd_create"), f.String("test").Addr(), allowSealing); err != nil {
				return err
			}
			if _, err = f.Call(symbolIn(p, f, "ftruncate"), fd, size); err != nil {
				return err
			}
			if _, err = f.Call(symbolIn(p, f, "fcntl"), fd, addSeals, seals); err != nil || size == 0 {
				return err
			}
			_, err = f.Call(symbolIn(p, f, "pwrite"), fd, f.String("theirs").Addr(), 6, 100)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	const shrink = 2
	if _, err := p.MapFile(file(size, 0)); err == nil || !strings.Contains(err.Error(), "can be shortened") {
		t.Errorf("a file without a seal: %v", err)
	}
	if _, err := p.MapFile(file(0, shrink)); err == nil || !strings.Contains(err.Error(), "has 0 bytes") {
		t.Errorf("an empty file: %v", err)
	}
	if _, err := p.MapFile(999); err == nil {
		t.Error("a descriptor that is not open was mapped")
	}
	m, err := p.MapFile(file(size, shrink))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if got := string(m.Bytes()[100:106]); got != "theirs" || len(m.Bytes()) != size {
		t.Errorf("%q in %d bytes", got, len(m.Bytes()))
	}
	m.Bytes()[0] = 1
	if err := errors.Join(m.Free(), m.Free()); err != nil {
		t.Error(err)
	}
}
