// Package archive writes tar archives whose bytes depend only on the names, modes and contents of
// their files and on one time.
package archive

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// File is a regular file of an archive.
type File struct {
	Name string // slash-separated, without a leading slash
	Mode int64  // permission bits
	Data []byte
}

// Folder is a folder with an owner. Folders of files belong to root and need no entry.
type Folder struct {
	Name string
	Mode int64
	UID  int
}

// Tar writes the files and their folders in the order of their names. All entries have the given
// time; files belong to root. It returns an error for a name that is not clean or is given twice.
func Tar(w io.Writer, when time.Time, files []File, folders ...Folder) error {
	entries, err := list(files, folders)
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Uid: e.uid, Gid: e.uid, ModTime: when.UTC().Truncate(time.Second),
			Typeflag: tar.TypeReg, Size: int64(len(e.data)), Format: tar.FormatUSTAR}
		if e.folder {
			h.Typeflag, h.Name = tar.TypeDir, e.name+"/"
		}
		if err := t.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		if _, err := t.Write(e.data); err != nil {
			return err
		}
	}
	return t.Close()
}

// Gzip writes a compressed Tar.
func Gzip(w io.Writer, when time.Time, files []File, folders ...Folder) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression) // the header has no time and no name
	if err != nil {
		return err
	}
	if err := Tar(z, when, files, folders...); err != nil {
		return err
	}
	return z.Close()
}

type entry struct {
	name   string
	mode   int64
	uid    int
	folder bool
	data   []byte
}

// list returns the entries of files and of all their folders, ordered by name.
func list(files []File, folders []Folder) ([]entry, error) {
	all := map[string]entry{}
	add := func(e entry) error {
		if e.name != path.Clean(e.name) || path.IsAbs(e.name) || e.name == "." || strings.HasPrefix(e.name, "..") {
			return fmt.Errorf("%q is not a clean relative name of a file", e.name)
		}
		if _, ok := all[e.name]; ok {
			return fmt.Errorf("%s is given twice", e.name)
		}
		all[e.name] = e
		return nil
	}
	for _, f := range folders {
		if err := add(entry{name: f.Name, mode: f.Mode, uid: f.UID, folder: true}); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		if err := add(entry{name: f.Name, mode: f.Mode, data: f.Data}); err != nil {
			return nil, err
		}
	}
	var entries []entry
	for _, e := range all {
		entries = append(entries, e)
	}
	for _, e := range entries {
		for dir := path.Dir(e.name); dir != "."; dir = path.Dir(dir) {
			if parent, ok := all[dir]; !ok {
				all[dir] = entry{name: dir, mode: 0o755, folder: true}
				entries = append(entries, all[dir])
			} else if !parent.folder {
				return nil, fmt.Errorf("%s is a file and a folder", dir)
			}
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return entries, nil
}
