package hostcall

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	for deadline := time.Now().Add(20 * time.Second); running(pid); {
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
