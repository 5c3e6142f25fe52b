// Package kept bounds how many files of a host stay in a folder: what was measured for builds of
// the program that ran long ago.
package kept

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Builds is of how many builds a host's files are kept.
const Builds = 3

// Newest removes, from the folder of the file own, the files whose names begin with a stem and end
// with a suffix, but for own, whether it is there or not, and the newest Builds-1 of the others. A
// file that somebody else has removed meanwhile is none. plans/choose calls it for the rates of a
// core, tuner for kernel trials.
func Newest(own, stem, suffix string) error {
	folder := filepath.Dir(own)
	files, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("files of earlier builds: %w", err)
	}
	files = slices.DeleteFunc(files, func(f os.DirEntry) bool {
		name := f.Name()
		return !strings.HasPrefix(name, stem) || !strings.HasSuffix(name, suffix) || name == filepath.Base(own)
	})
	age := map[string]time.Time{}
	for _, f := range files {
		if info, err := f.Info(); err == nil {
			age[f.Name()] = info.ModTime()
		}
	}
	slices.SortStableFunc(files, func(a, b os.DirEntry) int { return age[b.Name()].Compare(age[a.Name()]) })
	err = nil
	for _, old := range files[min(Builds-1, len(files)):] {
		if e := os.Remove(filepath.Join(folder, old.Name())); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
