package gguf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

const (
	keySplitNo      = "split.no"
	keySplitCount   = "split.count"
	keySplitTensors = "split.tensors.count"
)

// mapping is one part's bytes and how to let go of them.
type mapping struct {
	data []byte
	// unmap releases data; nothing may read it afterwards.
	unmap func() error
}

// Open maps the file at path, read-only, and checks its header. A part of a multi-part file (NAME-00001-of-00003.gguf; any of the
// parts may be named) opens all of them, which must lie in one folder; the metadata is the first part's.
//
// The errors: those of the file system, and errors that wrap [ErrDamaged] or [ErrUnsupported]. The file must not be truncated or overwritten while it is open.
func Open(path string) (*File, error) {
	f, err := openPart(path)
	if err != nil {
		return nil, err
	}
	count, ok := f.Uint(keySplitCount)
	if !ok || count <= 1 {
		return f, nil
	}
	// The part that was named is opened again in its turn: parts are then handled all alike.
	if err := f.Close(); err != nil {
		return nil, err
	}
	return openParts(path, count)
}

// openPart maps and parses one file.
func openPart(path string) (*File, error) {
	m, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	f, err := parsePart(m.data)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), m.unmap())
	}
	f.parts = []mapping{m}
	for _, t := range f.tensors {
		t.mapped = mapped
	}
	return f, nil
}

// mapFile opens a regular file and maps it.
func mapFile(path string) (mapping, error) {
	file, err := os.Open(path)
	if err != nil {
		return mapping{}, err
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		return mapping{}, err
	}
	if !st.Mode().IsRegular() {
		return mapping{}, fmt.Errorf("%s is no regular file; name a .gguf file", path)
	}
	if st.Size() == 0 {
		return mapping{}, fmt.Errorf("%s: %w: the file is empty", path, ErrDamaged)
	}
	m, err := mapBytes(file, st.Size())
	if err != nil {
		return mapping{}, fmt.Errorf("mapping %s: %w", path, err)
	}
	return m, nil
}

var partName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// openParts opens all count parts of the file that the named part belongs to.
func openParts(path string, count uint64) (*File, error) {
	m := partName.FindStringSubmatch(filepath.Base(path))
	if m == nil || m[3] != fmt.Sprintf("%05d", count) {
		return nil, fmt.Errorf("%s: it is one of %d parts and must be named like NAME-00001-of-%05d.gguf, so that the others can be found", path, count, count)
	}
	var whole *File
	for i := range count {
		part := filepath.Join(filepath.Dir(path), fmt.Sprintf("%s-%05d-of-%05d.gguf", m[1], i+1, count))
		f, err := openPart(part)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("part %d of %d is missing: put %s beside the others", i+1, count, part)
		}
		if err == nil {
			err = checkPart(f, part, i, count)
		}
		if err == nil {
			whole, err = join(whole, f, part)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close(), whole.Close())
		}
	}
	if n, ok := whole.Uint(keySplitTensors); ok && n != uint64(len(whole.tensors)) {
		err := fmt.Errorf("%s: %w: key %q says %d tensors, the %d parts hold %d", path, ErrDamaged, keySplitTensors, n, count, len(whole.tensors))
		return nil, errors.Join(err, whole.Close())
	}
	return whole, nil
}

// checkPart refuses a part whose own numbers differ from its place in the name.
func checkPart(f *File, path string, no, count uint64) error {
	gotNo, _ := f.Uint(keySplitNo)
	gotCount, _ := f.Uint(keySplitCount)
	if gotNo != no || gotCount != count {
		return fmt.Errorf("%s: %w: its header says part %d of %d, its name part %d of %d", path, ErrDamaged, gotNo+1, gotCount, no+1, count)
	}
	return nil
}

// join moves the tensors and the mapping of part into whole; the first part becomes the whole.
func join(whole, part *File, path string) (*File, error) {
	if whole == nil {
		return part, nil
	}
	for _, t := range part.tensors {
		if whole.byName[t.Name] != nil {
			return whole, fmt.Errorf("%s: %w: tensor %s is in an earlier part too", path, ErrDamaged, show(t.Name))
		}
		whole.byName[t.Name] = t
	}
	whole.tensors = append(whole.tensors, part.tensors...)
	whole.parts = append(whole.parts, part.parts...)
	whole.size += part.size
	part.parts = nil
	return whole, nil
}

// Close unmaps the file. Metadata that was handed out stays valid; Tensor.Data does not, and reading it afterwards faults. Closing twice, or a nil File, does nothing.
func (f *File) Close() error {
	if f == nil {
		return nil
	}
	var errs []error
	for _, p := range f.parts {
		errs = append(errs, p.unmap())
	}
	f.parts, f.tensors, f.byName, f.meta, f.keys = nil, nil, nil, nil, nil
	return errors.Join(errs...)
}
