package testguest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// maxLine limits a line of the console: a result with the files that it returns, in base64.
const maxLine = 64 << 20

// Run boots the machine with the archive, to which it adds the steps, and passes on each result as
// it arrives. It returns when the guest has powered off or ctx ends. folder holds the initramfs and
// the sockets of shares during the run. busy is the CPU time of qemu.
func Run(ctx context.Context, m *Machine, tools Tools, a *Archive, steps []Step, folder string,
	got func(Result)) (busy time.Duration, err error) {
	initramfs := filepath.Join(folder, "initramfs")
	if err := writeInitramfs(initramfs, m, tools, a, steps); err != nil {
		return 0, err
	}
	defer os.Remove(initramfs)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sockets, stop, err := serveShares(ctx, m.Shares, tools.Virtiofsd, folder)
	defer stop()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, tools.Qemu, m.arguments(tools, initramfs, sockets)...)
	cmd.Stderr = os.Stderr
	console, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	count, tail, err := readConsole(console, got)
	if err != nil {
		cancel()
	}
	err = errors.Join(err, cmd.Wait())
	busy = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if err == nil && count != len(steps) {
		err = errors.New("the guest stopped early")
	}
	if err != nil {
		return busy, fmt.Errorf("after %d of %d steps: %w; the console ended with:\n%s", count, len(steps), err,
			strings.Join(tail, "\n"))
	}
	return busy, nil
}

// writeInitramfs adds the steps and the setup of the machine to the archive and writes it.
func writeInitramfs(to string, m *Machine, tools Tools, a *Archive, steps []Step) error {
	text, err := json.Marshal(steps)
	if err != nil {
		return err
	}
	a.Add(StepsFile, text)
	setup := Setup{Shares: m.Shares}
	for _, file := range tools.Modules {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		at := "/modules/" + filepath.Base(file)
		a.Add(at, data)
		setup.Modules = append(setup.Modules, at)
	}
	if text, err = json.Marshal(setup); err != nil {
		return err
	}
	a.Add(SetupFile, text)
	return os.WriteFile(to, a.Bytes(), 0o600)
}

// readConsole extracts the results from the output of the guest. tail is the end of the other
// output.
func readConsole(console io.Reader, got func(Result)) (count int, tail []string, err error) {
	lines := bufio.NewScanner(console)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), "\r")
		_, text, marked := strings.Cut(line, Mark) // firmware may have left the cursor anywhere on the first line
		if !marked {
			tail = append(tail, line)
			tail = tail[max(0, len(tail)-40):]
			continue
		}
		var r Result
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return count, tail, fmt.Errorf("the console garbled a result: %w", err)
		}
		count++
		got(r)
	}
	return count, tail, lines.Err()
}
