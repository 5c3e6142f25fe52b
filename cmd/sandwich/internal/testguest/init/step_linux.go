package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"sandwich/cmd/sandwich/internal/testguest"
)

// run executes one step in a root. The result has its error, if any.
func run(s *testguest.Step, root string) (r testguest.Result) {
	began := time.Now()
	r = testguest.Result{Name: s.Name, Exit: -1}
	if err := command(s, root, &r); err != nil {
		r.Err = err.Error()
	}
	r.Seconds = time.Since(began).Seconds()
	r.Files = map[string][]byte{}
	for _, path := range s.Read {
		data, err := os.ReadFile(filepath.Join(root, path))
		switch {
		case err == nil:
			r.Files[path] = data
		case !errors.Is(err, fs.ErrNotExist): // a command that failed writes none
			r.Err += " " + err.Error()
		}
	}
	return r
}

func command(s *testguest.Step, root string, r *testguest.Result) error {
	for _, node := range s.Fill {
		release, err := fill(node)
		if err != nil {
			return err
		}
		defer release()
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.Args[0], s.Args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if root != "/" {
		cmd.Dir, cmd.SysProcAttr.Chroot = "/", root
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if s.Cpuset != nil {
		leave, err := enter(cmd, s.Cpuset)
		if err != nil {
			return err
		}
		defer leave()
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err := act(ctx, s.While, cmd.Process.Pid, r)
	if len(s.While) > 0 {
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
	if failed := cmd.Wait(); failed != nil && !errors.As(failed, new(*exec.ExitError)) {
		err = errors.Join(err, failed)
	}
	if ctx.Err() != nil {
		err = errors.Join(err, fmt.Errorf("not done within %s", s.Limit))
	}
	r.Exit, r.Stdout, r.Stderr = cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
	return err
}

// group is the cpuset of the step that runs.
const group = cgroups + "/step"

// enter makes the command start inside a cpuset; leave removes it when the command has ended.
func enter(cmd *exec.Cmd, w *testguest.Cpuset) (leave func(), err error) {
	if err := os.Mkdir(group, 0o755); err != nil {
		return nil, err
	}
	if err := setCpuset(w); err != nil {
		return nil, err
	}
	dir, err := os.Open(group)
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	return func() {
		dir.Close()
		_ = os.Remove(group)
	}, nil
}

// setCpuset sets the CPUs and the memory nodes of the group.
func setCpuset(w *testguest.Cpuset) error {
	err := os.WriteFile(filepath.Join(group, "cpuset.cpus"), []byte(w.CPUs), 0)
	return errors.Join(err, os.WriteFile(filepath.Join(group, "cpuset.mems"), []byte(w.Mems), 0))
}
