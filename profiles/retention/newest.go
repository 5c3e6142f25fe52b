package retention

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

// Builds is the number of builds of the program for which a host's files are kept.
const Builds = 3

// Newest limits the files that earlier builds left in the folder of the file own. Among the files
// whose names start with stem and end with suffix it keeps own, which need not exist, and the
// Builds-1 most recently modified others, and removes the rest. A file that another process removes
// at the same time is not an error.
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
	modified := map[string]time.Time{}
	for _, f := range files {
		if info, err := f.Info(); err == nil {
			modified[f.Name()] = info.ModTime()
		}
	}
	slices.SortStableFunc(files, func(a, b os.DirEntry) int {
		return modified[b.Name()].Compare(modified[a.Name()])
	})
	err = nil
	for _, old := range files[min(Builds-1, len(files)):] {
		if e := os.Remove(filepath.Join(folder, old.Name())); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
