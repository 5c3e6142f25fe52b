// Command boot boots a guest and runs one command in it, for tests outside the module:
//
//	boot -init INIT MACHINE.json COMMAND [ARGUMENT]...
//	boot -check MACHINE.json
//
// MACHINE.json is a testguest.Machine, INIT is the command init built for it. The guest ends with
// the command, or when boot gets SIGINT or SIGTERM. With -check, boot prints what is missing on
// this host, nothing if the guest can run.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"sandwich/cmd/sandwich/internal/testguest"
)

// limit bounds the life of a guest whose test does not end it.
const limit = time.Hour

func main() {
	check := flag.Bool("check", false, "print what is missing on this host, and boot nothing")
	program := flag.String("init", "", "file of the command init")
	flag.Parse()
	if err := run(*check, *program, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "boot:", err)
		os.Exit(1)
	}
}

func run(check bool, program string, args []string) error {
	if len(args) == 0 || !check && len(args) == 1 {
		return errors.New("usage: boot -init INIT MACHINE.json COMMAND [ARGUMENT]..., or boot -check MACHINE.json")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var m testguest.Machine
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	tools, err := testguest.Find(&m)
	if check && errors.As(err, new(*testguest.MissingError)) {
		fmt.Println(err)
		return nil
	}
	if err != nil || check {
		return err
	}
	return boot(&m, tools, program, args[1:])
}

// boot runs a command in the guest and prints its output when it has ended.
func boot(m *testguest.Machine, tools testguest.Tools, program string, command []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	folder, err := os.MkdirTemp("", "guest")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	data, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	var a testguest.Archive
	a.Add("/init", data)
	var failed error
	steps := []testguest.Step{{Name: "command", Args: command, Limit: limit}}
	_, err = testguest.Run(ctx, m, tools, &a, steps, folder, func(r testguest.Result) {
		fmt.Printf("%s%s", r.Stdout, r.Stderr)
		if r.Exit != 0 || r.Err != "" {
			failed = fmt.Errorf("%s: exit code %d %s", command[0], r.Exit, r.Err)
		}
	})
	if ctx.Err() != nil {
		return nil // the guest was ended
	}
	return errors.Join(err, failed)
}
