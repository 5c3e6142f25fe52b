package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"sandwich/cmd/sandwich/internal/testguest"
)

// act does the actions of a step on the process that runs it, up to the first that fails.
func act(ctx context.Context, actions []testguest.Action, pid int, r *testguest.Result) error {
	for _, a := range actions {
		var seen testguest.Seen
		var err error
		switch {
		case a.Post != nil:
			seen, err = ask(ctx, a.Post)
		case a.Look:
			seen.Process, err = look(pid)
		case len(a.Run) > 0:
			seen, err = runDuring(ctx, a.Run)
		case a.Cpuset != nil:
			err = setCpuset(a.Cpuset)
		default:
			time.Sleep(a.Wait)
		}
		if err != nil {
			return err
		}
		r.Seen = append(r.Seen, seen)
	}
	return nil
}

// runDuring runs another command while that of the step runs.
func runDuring(ctx context.Context, args []string) (seen testguest.Seen, err error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	out, err := cmd.CombinedOutput()
	if errors.As(err, new(*exec.ExitError)) {
		err = nil // seen has the exit code
	}
	if err == nil {
		seen = testguest.Seen{Status: cmd.ProcessState.ExitCode(), Body: string(out)}
	}
	return seen, err
}

// ask sends a request and repeats it until the server listens.
func ask(ctx context.Context, p *testguest.Post) (seen testguest.Seen, err error) {
	for {
		seen, err = request(ctx, p)
		if !errors.Is(err, syscall.ECONNREFUSED) || ctx.Err() != nil {
			return seen, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func request(ctx context.Context, p *testguest.Post) (seen testguest.Seen, err error) {
	method := http.MethodGet
	if p.Body != "" {
		method = http.MethodPost
	}
	q, err := http.NewRequestWithContext(ctx, method, p.URL, strings.NewReader(p.Body))
	if err != nil {
		return seen, err
	}
	q.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return seen, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return testguest.Seen{Status: answer.StatusCode, Body: string(body)}, err
}
