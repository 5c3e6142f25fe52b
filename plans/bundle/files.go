package bundle

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sandwich/profiles"
	"sandwich/profiles/retention"
)

// ArchiveSuffix is the file name suffix of a packed bundle: one file that is accepted wherever a
// bundle folder is.
const ArchiveSuffix = ".sandwich"

// archiveNames lists the files of a packed bundle in their order. The last one is optional.
var archiveNames = []string{manifestFile, planFile, hostFile, evidenceFile, signatureFile}

// MaxArchive is the maximum size of a packed bundle in bytes: its files with a header and padding
// each, and the end mark.
const MaxArchive = 5*(profiles.MaxYAMLBytes+1024) + 1024

// opener returns the content of one file of a bundle. It fails if the file has more than limit
// bytes, and with fs.ErrNotExist if the bundle has no such file.
type opener func(name string, limit int64) ([]byte, error)

// openBundle returns an opener for the bundle at path, which is a folder or an archive.
func openBundle(path string) (opener, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return func(name string, limit int64) ([]byte, error) {
			return retention.ReadRegular(filepath.Join(path, name), limit)
		}, nil
	}
	data, err := retention.ReadRegular(path, MaxArchive)
	if err != nil {
		return nil, damaged("%v", err)
	}
	files, err := readArchive(data)
	if err != nil {
		return nil, err
	}
	return files.open, nil
}

// file is a file of a bundle with its content.
type file struct {
	name string
	data []byte
}

// files holds the files of a bundle in any order.
type files []file

// open returns the content of a file. It implements opener.
func (f files) open(name string, limit int64) ([]byte, error) {
	for _, x := range f {
		if x.name == name && int64(len(x.data)) <= limit {
			return x.data, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

// readArchive splits a packed bundle into its files. It accepts only the bytes that pack writes: no
// links, devices, folders, other names, padding or other order.
func readArchive(data []byte) (files, error) {
	var out files
	r := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, damaged("it is neither a folder nor a packed plan (%v)", err)
		}
		if h.Typeflag != tar.TypeReg {
			return nil, damaged("the packed plan has an entry %.40q that is not a regular file", h.Name)
		}
		if len(out) >= len(archiveNames) || h.Name != archiveNames[len(out)] {
			return nil, damaged("the packed plan has an entry %.40q out of place", h.Name)
		}
		if h.Size > profiles.MaxYAMLBytes {
			return nil, damaged("%s in the packed plan has %d bytes, more than %d", h.Name, h.Size,
				profiles.MaxYAMLBytes)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, damaged("the packed plan ends within %s", h.Name)
		}
		out = append(out, file{h.Name, text})
	}
	again, err := out.pack()
	if err != nil || !bytes.Equal(again, data) {
		return nil, damaged("the packed plan was changed after it was written, or is incomplete")
	}
	return out, nil
}

// pack returns the files as an archive. Equal files give equal bytes: the archive holds no times
// and no owners.
func (f files) pack() ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range archiveNames {
		data, err := f.open(name, profiles.MaxYAMLBytes)
		if name == signatureFile && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data)),
			ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
		if _, err := w.Write(data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// write writes the files to path: as an archive if the name ends in ArchiveSuffix, else as a
// folder.
func (f files) write(path string) error {
	if !strings.HasSuffix(path, ArchiveSuffix) {
		return f.writeFolder(filepath.Clean(path))
	}
	data, err := f.pack()
	if err != nil {
		return err
	}
	if err := retention.MakeDir(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return retention.WriteFile(path, data)
}

// writeFolder writes the files into a new folder that replaces the bundle at dir. If dir is a
// symbolic link, its target is replaced.
func (f files) writeFolder(dir string) (err error) {
	if dir, err = retention.Resolve(dir); err != nil {
		return err
	}
	dir = filepath.Clean(dir)
	if err := replaceable(dir); err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := retention.MakeDir(parent, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(tmp)
		}
	}()
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	for _, x := range f {
		if err := writeSynced(filepath.Join(tmp, x.name), x.data); err != nil {
			return err
		}
	}
	if err := retention.SyncDir(tmp); err != nil {
		return err
	}
	if err := swapIn(tmp, dir); err != nil {
		return err
	}
	return retention.SyncDir(parent)
}

// replaceable fails unless dir is absent, empty or a bundle.
func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return nil
	}
	for _, e := range entries {
		if e.Name() == manifestFile {
			return nil
		}
	}
	return fmt.Errorf("the folder is not empty and holds no plan; choose another path")
}

// swapIn replaces dir by tmp. If the system cannot exchange two folders, it renames dir first; a
// crash between the two renames leaves both folders complete under their temporary names.
func swapIn(tmp, dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return os.Rename(tmp, dir)
	}
	if exchange(tmp, dir) == nil {
		return os.RemoveAll(tmp)
	}
	old := tmp + ".old"
	if err := os.Rename(dir, old); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir))
	}
	return os.RemoveAll(old)
}

// writeSynced creates a file and syncs it to disk.
func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, werr := f.Write(data)
	return errors.Join(werr, f.Sync(), f.Close())
}

// Names of the files of a bundle. Signatures are optional and cover the manifest.
const (
	planFile     = "plan.yaml"
	hostFile     = "host.yaml"
	evidenceFile = "evidence.yaml"
	manifestFile = "MANIFEST.yaml"
)

// signatureFile holds signatures of the manifest's bytes, and so of all files that the manifest
// lists.
const signatureFile = "SIGNATURES.yaml"
