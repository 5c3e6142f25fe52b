package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"sandwich/profiles/retention"
)

const (
	keySplitNo      = "split.no"
	keySplitCount   = "split.count"
	keySplitTensors = "split.tensors.count"

	copyAgain = "; copy or download it again" // remedy for damaged files
)

// Open maps the file at path read-only and checks its header. If path is one of several parts, such
// as NAME-00001-of-00003.gguf, it opens all parts, which must be in the same folder. The metadata
// is that of the first part.
//
// It returns errors of the file system and errors that wrap [ErrDamaged], [ErrUnsupported] or
// [ErrChanged]. Metadata and the list of tensors are copies. Tensor.Data is the mapped file, which
// another program may truncate or overwrite at any time: read it inside [File.Guard] or
// [Tensor.Guard].
func Open(path string) (*File, error) {
	f, err := Look(path)
	if err == nil && f.unsupported != nil {
		err = errors.Join(fmt.Errorf("%s: %w", path, f.unsupported), f.Close())
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Look is like Open for callers that read no tensor data: an unsupported tensor type is not an
// error, and tensors of such a type have no Data.
func Look(path string) (*File, error) {
	f, err := openPart(path)
	if err != nil {
		return nil, err
	}
	count, ok := f.Uint(keySplitCount)
	if !ok || count <= 1 {
		return f, nil
	}
	// openParts opens all parts alike, path again among them.
	if err := f.Close(); err != nil {
		return nil, err
	}
	return openParts(path, count)
}

// openPart maps and parses one file.
func openPart(path string) (f *File, err error) {
	m, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	err = m.guard(func() (err error) {
		f, err = parseMapped(m.data)
		return err
	})
	if err != nil {
		switch {
		case errors.Is(err, ErrChanged): // names the file itself
		case errors.Is(err, ErrDamaged) && !strings.HasSuffix(err.Error(), copyAgain):
			err = fmt.Errorf("%s: %w"+copyAgain, path, err)
		default:
			err = fmt.Errorf("%s: %w", path, err)
		}
		return nil, errors.Join(err, m.close())
	}
	f.parts, f.path = []*mapping{m}, path
	for _, t := range f.tensors {
		t.part = m
	}
	return f, nil
}

// parseMapped parses a file that other programs may write to meanwhile. The first pass finds the
// end of the header. The second parses a copy of the header, so that the checked bytes are those
// used.
func parseMapped(data []byte) (*File, error) {
	f, err := parsePart(data, data)
	if err != nil {
		return nil, err
	}
	return parsePart(bytes.Clone(data[:f.header]), data)
}

// mapFile opens a regular file and maps it. An empty file is an error.
func mapFile(path string) (*mapping, error) {
	file, err := retention.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	st, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if st.Size() == 0 {
		return nil, errors.Join(fmt.Errorf("%s: %w: the file is empty"+copyAgain, path, ErrDamaged), file.Close())
	}
	data, unmap, err := mapBytes(file, st.Size())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mapping %s: %w", path, err), file.Close())
	}
	return &mapping{path: path, data: data, file: file, opened: st, unmap: unmap}, nil
}

var partName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)
})

// openParts opens all count parts of the file that the named part belongs to.
func openParts(path string, count uint64) (*File, error) {
	m := partName().FindStringSubmatch(filepath.Base(path))
	if m == nil || m[3] != fmt.Sprintf("%05d", count) {
		return nil, fmt.Errorf("%s: it is one of %d parts and must be named like NAME-00001-of-%05d.gguf, so "+
			"that the others can be found", path, count, count)
	}
	var whole *File
	for i := range count {
		part := filepath.Join(filepath.Dir(path), fmt.Sprintf("%s-%05d-of-%05d.gguf", m[1], i+1, count))
		f, err := openPart(part)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("part %d of %d is missing: put %s next to the others", i+1, count, part)
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
		err := fmt.Errorf("%s: %w: key %q says %d tensors, the %d parts hold %d"+copyAgain, path, ErrDamaged,
			keySplitTensors, n, count, len(whole.tensors))
		return nil, errors.Join(err, whole.Close())
	}
	return whole, nil
}

// checkPart returns an error if the header of a part contradicts the numbers in its file name.
func checkPart(f *File, path string, no, count uint64) error {
	gotNo, _ := f.Uint(keySplitNo)
	gotCount, _ := f.Uint(keySplitCount)
	if gotNo != no || gotCount != count {
		return fmt.Errorf("%s: %w: its header says part %d of %d, its name part %d of %d"+copyAgain, path, ErrDamaged,
			gotNo+1, gotCount, no+1, count)
	}
	return nil
}

// join moves the tensors and the mapping of part into whole and returns whole; if that is nil, it
// returns part.
func join(whole, part *File, path string) (*File, error) {
	if whole == nil {
		return part, nil
	}
	for _, t := range part.tensors {
		if whole.byName[t.Name] != nil {
			return whole, fmt.Errorf("%s: %w: tensor %s is also in an earlier part"+copyAgain, path, ErrDamaged,
				show(t.Name))
		}
		whole.byName[t.Name] = t
	}
	whole.tensors = append(whole.tensors, part.tensors...)
	whole.parts = append(whole.parts, part.parts...)
	whole.size += part.size
	if whole.unsupported == nil {
		whole.unsupported = part.unsupported
	}
	part.parts = nil
	return whole, nil
}

// Close unmaps the file. Metadata that was returned stays valid. Reading Tensor.Data afterwards
// faults. Closing twice, or a nil File, does nothing.
func (f *File) Close() error {
	if f == nil {
		return nil
	}
	var errs []error
	for _, p := range f.parts {
		errs = append(errs, p.close())
	}
	f.parts, f.tensors, f.byName, f.meta, f.keys = nil, nil, nil, nil, nil
	return errors.Join(errs...)
}
