package hostcall

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// startTest starts a child, or skips the test where the host has no C library.
func startTest(t *testing.T, o Options) *Process {
	t.Helper()
	if _, err := Interpreter(); err != nil {
		t.Skipf("device drivers need a C library that is linked dynamically: %v", err)
	}
	p, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// symbol returns a function of the C library.
func symbol(t *testing.T, p *Process, name string) uint64 {
	t.Helper()
	at, err := p.LibC().Symbol(name)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// call makes one call on a thread.
func call(th *Thread, function uint64, args ...uint64) (result uint64, err error) {
	err = th.With(func(f *Frame) error {
		result, err = f.Call(function, args...)
		return err
	})
	return result, err
}

// TestCalls checks arguments in registers and on the stack, odd and even numbers of them.
func TestCalls(t *testing.T) {
	checkCalls(t, startTest(t, Options{}))
}

func checkCalls(t *testing.T, p *Process) {
	t.Helper()
	snprintf := symbol(t, p, "snprintf")
	for n := range maxArgs - 2 {
		format, want := "", ""
		args := []uint64{0, 256, 0}
		for i := range n {
			format += "%d,"
			want += fmt.Sprint(i*7, ",")
			args = append(args, uint64(i*7))
		}
		err := p.Main().With(func(f *Frame) error {
			to := f.Alloc(256)
			args[0], args[2] = to.Addr(), f.String(format).Addr()
			length, err := f.Call(snprintf, args...)
			if got := to.CString(0, 256); got != strings.ReplaceAll(want, " ", "") || int(length) != len(got) {
				t.Errorf("%d arguments: %q, length %d, want %q", n, got, length, want)
			}
			return err
		})
		if err != nil && n <= maxArgs-3 {
			t.Fatal(err)
		}
	}
}

// TestRequests checks requests of several calls and their ends by checked calls.
func TestRequests(t *testing.T) {
	p := startTest(t, Options{})
	abs := symbol(t, p, "abs")
	var all []Call
	for i := range maxCalls {
		all = append(all, Call{Function: abs, Args: []uint64{uint64(-i)}})
	}
	with := func(calls []Call) (n int, err error) {
		err = p.Main().With(func(f *Frame) error {
			n, err = f.Do(calls)
			return err
		})
		return n, err
	}
	if n, err := with(all); n != maxCalls || err != nil {
		t.Fatalf("%d calls completed: %v", n, err)
	}
	for i, c := range all {
		if c.Result != uint64(i) {
			t.Errorf("call %d returned %d", i, c.Result)
		}
	}
	all[0].Check, all[3].Check = true, true
	if n, err := with(all); n != 3 || err != nil {
		t.Errorf("the request ended after %d calls, want 3: %v", n, err)
	}
	if _, err := with(append(all, Call{Function: abs})); err == nil {
		t.Error("a request with too many calls was accepted")
	}
	if _, err := with([]Call{{Function: 0}}); err == nil {
		t.Error("a call of address 0 was accepted")
	}
	if _, err := with([]Call{{Function: abs, Args: make([]uint64, maxArgs+1)}}); err == nil {
		t.Error("a call with too many arguments was accepted")
	}
	if err := p.Err(); err != nil {
		t.Errorf("refused requests lose the process: %v", err)
	}
}

// TestThreads checks that calls of other threads run while one thread is in a call, from many
// goroutines.
func TestThreads(t *testing.T) {
	p := startTest(t, Options{})
	blocked, err := p.NewThread()
	if err != nil {
		t.Fatal(err)
	}
	var fds Block
	pipe, read, write, abs := symbol(t, p, "pipe"), symbol(t, p, "read"), symbol(t, p, "write"), symbol(t, p, "labs")
	if err := p.Main().With(func(f *Frame) error {
		fds = f.Alloc(8)
		_, err := f.Call(pipe, fds.Addr())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	from, to := uint64(fds.U32(0)), uint64(fds.U32(4))
	ended := make(chan error)
	go func() {
		_, err := call(blocked, read, from, p.shared0(), 1)
		ended <- err
	}()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 200 {
				want := uint64(i*1000 + j)
				if got, err := call(p.Main(), abs, want); got != want || err != nil {
					t.Errorf("labs(%d) is %d: %v", want, got, err)
					return
				}
			}
		})
	}
	group.Wait()
	select {
	case err := <-ended:
		t.Fatal("the read returned before the write", err)
	default:
	}
	if _, err := call(p.Main(), write, to, p.shared0(), 1); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for range maxThreads - 2 {
		if _, err := p.NewThread(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.NewThread(); err == nil {
		t.Error("more threads than mailboxes")
	}
}

// shared0 returns an address that the child may write: the unused end of the header.
func (p *Process) shared0() uint64 { return p.word64(headerBase).Load() + 2048 }

// TestChildAttributes checks what the child inherits.
func TestChildAttributes(t *testing.T) {
	t.Setenv("SANDWICH_SECRET", "x")
	var old unix.CPUSet
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		t.Fatal(err)
	}
	leak, err := os.Open("/dev/null") // Go sets close-on-exec; the child must not have it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = leak.Close() }()
	p := startTest(t, Options{})
	folder := fmt.Sprintf("/proc/%d/", p.PID())
	status, err := os.ReadFile(folder + "status")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Name:\t" + processName, "NoNewPrivs:\t1", fmt.Sprintf("PPid:\t%d", os.Getpid())} {
		if !strings.Contains(string(status), want+"\n") {
			t.Errorf("/proc/PID/status lacks %q", want)
		}
	}
	fds, err := os.ReadDir(folder + "fd")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, fd := range fds {
		names = append(names, fd.Name())
	}
	if !slices.Equal(names, []string{"0", "1", "2", "4"}) {
		t.Errorf("descriptors of the child: %q", names)
	}
	environ, err := os.ReadFile(folder + "environ")
	if err != nil || strings.Contains(string(environ), "SANDWICH_SECRET") {
		t.Errorf("the child has the variables of this program: %v", err)
	}
	var signal uint64
	err = p.Main().With(func(f *Frame) error {
		to := f.Alloc(8)
		_, err := f.Call(symbolIn(p, f, "prctl"), unix.PR_GET_PDEATHSIG, to.Addr())
		signal = to.U64(0)
		return err
	})
	if err != nil || signal != uint64(syscall.SIGKILL) {
		t.Errorf("parent-death signal %d, want SIGKILL: %v", signal, err)
	}
}

// symbolIn looks a function up inside a frame.
func symbolIn(p *Process, f *Frame, name string) uint64 {
	at, _ := f.Call(p.table[tableDlsym], 0, f.String(name).Addr())
	return at
}

// TestAffinity checks that the child does not inherit the affinity of a pinned thread.
func TestAffinity(t *testing.T) {
	if startAffinity.Count() < 2 {
		t.Skip("needs two PUs; allow this process another one")
	}
	one := unix.CPUSet{}
	for i := range 1024 {
		if startAffinity.IsSet(i) {
			one.Set(i)
			break
		}
	}
	pinned := make(chan *Process)
	go func() {
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Error(err)
		}
		p, err := Start(Options{})
		if err != nil {
			t.Error(err)
		}
		if err := unix.SchedSetaffinity(0, &startAffinity); err != nil {
			t.Error(err)
		}
		pinned <- p
	}()
	p := <-pinned
	if p == nil {
		return
	}
	var got unix.CPUSet
	if err := unix.SchedGetaffinity(p.PID(), &got); err != nil || got != startAffinity {
		t.Errorf("the child may run on %d CPUs, want %d: %v", got.Count(), startAffinity.Count(), err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestMemfdForbidden checks the file in the cache folder, and the error where that is impossible.
func TestMemfdForbidden(t *testing.T) {
	if _, err := Interpreter(); err != nil {
		t.Skipf("device drivers need a C library that is linked dynamically: %v", err)
	}
	saved := createMemfd
	defer func() { createMemfd = saved }()
	createMemfd = func(string, int) (int, error) { return -1, unix.EPERM }
	cache := filepath.Join(t.TempDir(), "cache")
	checkCalls(t, startTest(t, Options{Cache: cache}))
	if left, err := os.ReadDir(cache); err != nil || len(left) != 0 {
		t.Errorf("the cache folder has %d files: %v", len(left), err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(Options{Cache: filepath.Join(file, "cache")})
	if err == nil || !strings.HasPrefix(err.Error(), "cannot start a driver process: anonymous file: ") {
		t.Errorf("without a folder: %v", err)
	}
}

// TestArm64 runs the arm64 executable in an emulator and calls the C library of a cross compiler.
func TestArm64(t *testing.T) {
	qemu, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		t.Skip("qemu-aarch64 is not installed: install qemu-user")
	}
	const root, loader = "/usr/aarch64-linux-gnu", "/lib/ld-linux-aarch64.so.1"
	if _, err := os.Stat(root + loader); err != nil {
		t.Skip("the arm64 C library is not installed: install libc6-arm64-cross")
	}
	image, err := Executable("arm64", loader)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "host")
	if err := os.WriteFile(path, image, 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := start(Options{}, "arm64", func(files []*os.File, p *Process) (*os.Process, error) {
		cmd := exec.Command(qemu, "-L", root, path)
		cmd.ExtraFiles = files
		cmd.Stdout, cmd.Stderr = &p.output, &p.output
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		go func() { p.onEnd(cmd.Wait()) }()
		return cmd.Process, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	checkCalls(t, p)
	checkShare(t, p)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestShare checks that both processes see the memory of a region.
func TestShare(t *testing.T) {
	checkShare(t, startTest(t, Options{}))
}

func checkShare(t *testing.T, p *Process) {
	t.Helper()
	r, err := p.Share(100_000)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Bytes()) != 2*mappedPage {
		t.Errorf("%d bytes", len(r.Bytes()))
	}
	if _, err := call(p.Main(), symbol(t, p, "memset"), r.Addr()+70_000, 7, 10); err != nil {
		t.Fatal(err)
	}
	if b := r.Bytes(); b[69_999] != 0 || b[70_000] != 7 || b[70_009] != 7 || b[70_010] != 0 {
		t.Errorf("% x", b[69_998:70_012])
	}
	copy(r.Bytes(), "shared\x00")
	if n, err := call(p.Main(), symbol(t, p, "strlen"), r.Addr()); n != 6 || err != nil {
		t.Errorf("strlen is %d: %v", n, err)
	}
	if err := r.Free(); err != nil {
		t.Fatal(err)
	}
	if err := r.Free(); err != nil {
		t.Errorf("second Free: %v", err)
	}
	if _, err := p.Share(0); err == nil {
		t.Error("0 bytes were shared")
	}
}

// TestLibrary checks the errors of libraries and functions that do not exist.
func TestLibrary(t *testing.T) {
	p := startTest(t, Options{})
	const want = "load libno-such.so.1: libno-such.so.1: "
	if _, err := p.Load("libno-such.so.1"); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("Load: %v", err)
	}
	if _, err := p.LibC().Symbol("no_such_function"); err == nil {
		t.Error("a function that does not exist was found")
	}
	if _, err := p.Load("libm.so.6"); err != nil {
		t.Error(err)
	}
}
