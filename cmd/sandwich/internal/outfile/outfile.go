// Package outfile writes files that appear under their names when they are complete.
package outfile

import (
	"fmt"
	"os"
)

// File is a file that appears under its name only when it is complete. What is no regular file
// (a pipe, /dev/null) is written to as it comes.
type File struct {
	*os.File
	path string // "" once committed, or where there is nothing to rename
}

// Create opens a file that Commit ends.
func Create(path string) (*File, error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		if st.IsDir() {
			return nil, fmt.Errorf("%s is a folder: name a file to write", path)
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		return &File{File: f}, err
	}
	f, err := os.Create(path + ".tmp")
	return &File{f, path}, err
}

// Commit ends a complete file.
func (o *File) Commit() error {
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

// Abort removes a file that was not committed.
func (o *File) Abort() {
	_ = o.Close()
	if o.path != "" {
		_ = os.Remove(o.Name())
	}
}
