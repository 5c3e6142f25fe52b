package kubetest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sandwich/cmd/sandwich/kubetest/node"
	"sandwich/cmd/sandwich/kubetest/sandbox"
)

var root = filepath.Join("..", "..", "..")

// Programs and files that make test-kubernetes builds.
var (
	binaryFlag = flag.String("binary", filepath.Join(root, "bin", "sandwich"), "the program to test")
	imageFlag  = flag.String("image", "", "its image as an archive, with the tag sandwich:test")
	kubeFlag   = flag.String("kube", "", "the binary of package kube")
	pauseFlag  = flag.String("pause", "", "the binary of package pause")
	crdsFlag   = flag.String("crds", "", "folder with the definitions of custom resources")
)

// missing is the reason why the cluster cannot run here, "" if it can.
var missing string

// TestMain runs the tests in a sandbox. The test binary is also the program that sets up a node.
func TestMain(m *testing.M) {
	if is, err := node.Main(); is {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
	flag.Parse()
	missing = node.Missing()
	switch {
	case missing != "":
	case sandbox.Dir() != "":
		if err := sandbox.Enter(); err != nil {
			fmt.Fprintln(os.Stderr, "sandbox:", err)
			os.Exit(1)
		}
	default:
		status, err := sandbox.Run()
		if err != nil {
			fmt.Fprintln(os.Stderr, "sandbox:", err)
			status = 1
		}
		os.Exit(status)
	}
	os.Exit(m.Run())
}
