package plans

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

// readFiles reads and checks the bundle at path and returns its files as well.
func readFiles(path string) (files, *Bundle, error) {
	open, err := openBundle(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read plan %s: %w", path, err)
	}
	var out files
	b, err := decode(func(name string, limit int64) ([]byte, error) {
		data, err := open(name, limit)
		if err == nil {
			out = append(out, file{name, data})
		}
		return data, err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read plan %s: %w", path, err)
	}
	return out, b, nil
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
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return retention.WriteFile(path, data)
}

// Pack checks the bundle at path and returns it as an archive, for `plan push`.
func Pack(path string) ([]byte, *Bundle, error) {
	f, b, err := readFiles(path)
	if err != nil {
		return nil, nil, err
	}
	data, err := f.pack()
	if err != nil {
		return nil, nil, fmt.Errorf("pack plan %s: %w", path, err)
	}
	return data, b, nil
}

// Unpack checks a packed bundle from another machine and writes it to the path to, packed or as a
// folder according to the name. It implements `plan pull`. The function accept may be nil; its
// error rejects the bundle. An invalid bundle fails with ErrDamaged.
func Unpack(data []byte, accept func(*Bundle) error, to string) error {
	f, err := readArchive(data)
	if err != nil {
		return err
	}
	b, err := decode(f.open)
	if err == nil && accept != nil {
		err = accept(b)
	}
	if err != nil {
		return err
	}
	if err := f.write(to); err != nil {
		return fmt.Errorf("write plan %s: %w", to, err)
	}
	return nil
}

// Copy checks the bundle at from and writes it with its signatures to the path to, packed or as a
// folder according to the name. It implements `plan pack` and `plan unpack`.
func Copy(from, to string) error {
	f, _, err := readFiles(from)
	if err != nil {
		return err
	}
	if err := f.write(to); err != nil {
		return fmt.Errorf("write plan %s: %w", to, err)
	}
	return nil
}
