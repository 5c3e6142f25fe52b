package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/plan"
	"sandwich/cmd/sandwich/internal/cli/root"
	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/synth"
	"sandwich/topotree"
)

// programs lists the commands that the test binary runs as under other names.
var programs = map[string]func(){"sandwich": func() {
	registerSimulated()
	main()
}}

// TestMain makes this test binary stand in for the program, so that scripts run the real command
// tree.
func TestMain(m *testing.M) { testscript.Main(m, programs) }

// TestScripts runs the command-line sessions of testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:       "testdata/script",
		Condition: conditions,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			if features, ok := os.LookupEnv("SANDWICH_FEATURES"); ok { // plans are made in this process, too
				e.Setenv("SANDWICH_FEATURES", features)
			}
			ci, err := filepath.Abs("../../docs/ci")
			if err != nil {
				return err
			}
			e.Setenv("CI", ci)
			host, err := profiles.Live()
			if err != nil {
				return err
			}
			e.Setenv("PU", strconv.Itoa(host.UsablePUs().First()))
			e.Setenv("XDG_DATA_HOME", filepath.Join(e.WorkDir, "data"))
			e.Setenv("XDG_RUNTIME_DIR", e.WorkDir)
			startModelServer(e)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"mkplan":   makePlan,
			"truncate": truncateFile,
			"flip":     flipByte,
			"exits":    exits,
			"mkmodel":  makeModel,
			"variant":  makeVariant,
			"code":     codeOf,
			"longest":  longestPrefix,
			"publish":  serveModel,
			"mkrates":  storeRates,
		},
		RequireExplicitExec: true,
	})
}

// makePlan writes an untuned plan for this host as a bundle: mkplan DIR [foreign] [model=FILE]
// [pu=N], of the embedded model unless there is a file, and for a process on one PU if N is given.
func makePlan(ts *testscript.TestScript, _ bool, args []string) {
	host, err := profiles.Live()
	ts.Check(err)
	file, options := "", heuristic.Options{}
	for _, arg := range args[1:] {
		if path, ok := strings.CutPrefix(arg, "model="); ok {
			file, options.Attend = ts.MkAbs(path), "f32"
		} else if pu, ok := strings.CutPrefix(arg, "pu="); ok {
			n, err := strconv.Atoi(pu)
			ts.Check(err)
			d := host.Machine.Describe()
			d.Allowed = topotree.NewCPUSet(n)
			host.Machine, err = d.Machine()
			ts.Check(err)
		} else {
			host.Host.CPUModel = "Some Other CPU"
		}
	}
	shape, err := plan.ShapeOfFile(file)
	ts.Check(err)
	p, err := heuristic.Default(host, shape, options)
	ts.Check(err)
	b := bundle.Bundle{Plan: *p, Host: *host, Evidence: evidence.Evidence{Version: p.Version,
		Created: "2026-01-31T12:00:00Z"}}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(dir), 0o755))
	ts.Check(b.Write(dir))
}

// truncateFile cuts a file to the first half: truncate FILE.
func truncateFile(ts *testscript.TestScript, _ bool, args []string) {
	st, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), st.Size()/2))
}

// makeModel writes a small model of random weights; tensors that are named after it are filled with
// a huge number, and the model is named by NAME=VALUE, in Go's escapes: mkmodel FILE [name="VALUE"]
// [experts] [TENSOR]...
func makeModel(ts *testscript.TestScript, _ bool, args []string) {
	name, experts := "small", false
	var huge []string
	for _, arg := range args[1:] {
		if arg == "experts" {
			experts = true
		} else if value, ok := strings.CutPrefix(arg, "name="); ok {
			var err error
			name, err = strconv.Unquote(`"` + value + `"`)
			ts.Check(err)
		} else {
			huge = append(huge, arg)
		}
	}
	data, err := smallModel(name, experts, huge...)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o644))
}

// smallModel returns a file of random float32 weights whose named tensors are filled with a huge
// number. It is a mixture of experts or a dense model.
func smallModel(name string, experts bool, huge ...string) ([]byte, error) {
	c := model.Config{Name: name, Arch: "llama", Eps: 1e-5, RopeBase: 10000,
		Dims: model.Dims{Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 48, Vocab: 384, Context: 256}}
	if experts {
		c.Arch, c.Experts = "qwen3moe", model.Experts{Count: 4, Used: 2, FFN: 32}
	}
	var out bytes.Buffer
	if err := synth.Write(context.Background(), gguf.NewWriter(&out), c, synth.Uniform(gguf.F32), 1,
		nil); err != nil {
		return nil, err
	}
	f, err := gguf.Parse(out.Bytes())
	if err != nil {
		return nil, err
	}
	for _, name := range huge {
		t, ok := f.Tensor(name)
		if !ok {
			return nil, fmt.Errorf("no tensor %s", name)
		}
		for i := range t.Elems() {
			binary.LittleEndian.PutUint32(t.Data[4*i:], math.Float32bits(3e38))
		}
	}
	return out.Bytes(), nil
}

// flipByte changes one byte in the middle of a file: flip FILE.
func flipByte(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	data[len(data)/2] ^= 1
	ts.Check(os.WriteFile(path, data, 0o644))
}

// TestEveryVerbHelps checks that the help of each verb has a description and an example, and that
// unknown flags and arguments get exit code 2.
func TestEveryVerbHelps(t *testing.T) {
	var walk func(path []string)
	walk = func(path []string) {
		c, _, err := root.New(verbs()...).Find(path)
		if err != nil {
			t.Fatal(err)
		}
		if c.Short == "" || (!c.HasSubCommands() && c.Example == "" && c.Name() != "version") {
			t.Errorf("%s: no description or no example", c.CommandPath())
		}
		if code := root.Run(context.Background(), append(path, "--no-such-flag"), verbs()...); code != exit.Input {
			t.Errorf("%s --no-such-flag: exit code %d, want %d", c.CommandPath(), code, exit.Input)
		}
		for _, sub := range c.Commands() {
			walk(append(append([]string{}, path...), sub.Name()))
		}
	}
	walk(nil)
}

// exits runs the program and checks its exit code: exits CODE ARGS...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	codeOf(ts, neg, append([]string{args[0], "sandwich"}, args[1:]...))
}

// codeOf holds the exit code of any program: code CODE PROGRAM ARGS...
func codeOf(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		got = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%v: exit code %d, want %d", args[1:], got, want)
	}
}
