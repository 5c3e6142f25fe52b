package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sandwich/cmd/sandwich/internal/testguest"
)

// sharedRoot is where a share at "/" is mounted. The steps run in it.
const sharedRoot = "/root"

// applySetup loads the modules and mounts the shares of testguest.SetupFile. It returns the root
// folder of the steps.
func applySetup() (root string, err error) {
	text, err := os.ReadFile(testguest.SetupFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "/", nil
	}
	if err != nil {
		return "", err
	}
	var setup testguest.Setup
	if err := json.Unmarshal(text, &setup); err != nil {
		return "", err
	}
	for _, path := range setup.Modules {
		if err := loadModule(path); err != nil {
			return "", fmt.Errorf("loading %s: %w", path, err)
		}
	}
	return mountShares(setup.Shares)
}

// loadModule loads a kernel module, which may be compressed.
func loadModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	flags := 0
	if !strings.HasSuffix(path, ".ko") {
		flags = unix.MODULE_INIT_COMPRESSED_FILE
	}
	return unix.FinitModule(int(f.Fd()), "", flags)
}

// mountShares mounts the shares, the root first.
func mountShares(shares []testguest.Share) (root string, err error) {
	root = "/"
	for _, s := range shares {
		if s.At == "/" {
			root = sharedRoot
			if err := mountShare(s, root); err != nil {
				return "", err
			}
			if err := mountSystem(root); err != nil {
				return "", err
			}
			if err := mount("tmpfs", "tmpfs", root+"/run", 0); err != nil {
				return "", err
			}
		}
	}
	for _, s := range shares {
		if s.At != "/" {
			if err := mountShare(s, filepath.Join(root, s.At)); err != nil {
				return "", err
			}
		}
	}
	return root, nil
}

func mountShare(s testguest.Share, at string) error {
	flags := uintptr(unix.MS_RDONLY)
	if s.Write {
		flags = 0
	}
	return mount(s.Tag, "virtiofs", at, flags)
}
