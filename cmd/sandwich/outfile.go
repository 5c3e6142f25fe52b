package main

import (
	"fmt"
	"os"
)

// outFile is a file that appears under its name only when it is complete. What is no regular file
// (a pipe, /dev/null) is written to as it comes.
type outFile struct {
	*os.File
	path string // "" once committed, or where there is nothing to rename
}

func createOutput(path string) (*outFile, error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		if st.IsDir() {
			return nil, fmt.Errorf("%s is a folder: name a file to write", path)
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		return &outFile{File: f}, err
	}
	f, err := os.Create(path + ".tmp")
	return &outFile{f, path}, err
}

// commit ends a complete file.
func (o *outFile) commit() error {
	name, path := o.Name(), o.path
	if err := o.Close(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	o.path = ""
	if path == "" {
		return nil
	}
	return os.Rename(name, path)
}

// abort removes a file that was not committed.
func (o *outFile) abort() {
	_ = o.Close()
	if o.path != "" {
		_ = os.Remove(o.Name())
	}
}
