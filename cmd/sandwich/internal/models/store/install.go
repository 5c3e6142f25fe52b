package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sandwich/cmd/sandwich/internal/models/fetch"
	"sandwich/cmd/sandwich/internal/models/ref"
	"sandwich/profiles/retention"
)

// Staged is a complete file that becomes part of a model.
type Staged struct {
	File
	Path   string // of the file
	Shared bool   // the file belongs to another model
}

// storeKey is the key of the lock under which models are installed and removed.
const storeKey = "store"

// Install adds a model with its files, and replaces an earlier version that was pulled by the same
// reference. It returns an error if another model has the name.
func (s *Store) Install(ctx context.Context, m *Model, files []Staged) error {
	if err := ref.CheckName(m.Name); err != nil {
		return err
	}
	_, unlock, err := s.Lock(ctx, storeKey, func() {})
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.CheckFree(m.Name, m.Reference); err != nil {
		return err
	}
	sum := sha256.New()
	m.Format, m.Files = formatVersion, nil
	for _, f := range files {
		fmt.Fprintln(sum, f.Name, f.Size, f.SHA256, f.Cache)
		m.Files = append(m.Files, f.File)
	}
	m.Folder = hex.EncodeToString(sum.Sum(nil))[:16]
	if err := m.check(m.Name); err != nil {
		return err
	}
	dir := filepath.Join(s.dir, m.Name)
	if err := os.MkdirAll(filepath.Join(dir, m.Folder), 0o700); err != nil {
		return err
	}
	for _, f := range files {
		if err := s.place(f, s.filePath(m, f.File)); err != nil {
			return err
		}
	}
	if err := retention.SyncDir(filepath.Join(dir, m.Folder)); err != nil {
		return err
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := retention.WriteFile(filepath.Join(dir, manifestName), append(data, '\n')); err != nil {
		return err
	}
	return removeOthers(dir, m.Folder)
}

// CheckFree returns an error if a model of another reference has a name.
func (s *Store) CheckFree(name, reference string) error {
	old, err := s.Get(name)
	switch {
	case errors.Is(err, ErrUnknown):
		return nil
	case err != nil:
		return err
	case old.Reference != reference:
		return fmt.Errorf("the name %s is taken by %s; give another one with --name", name, old.Reference)
	}
	return nil
}

// place puts a staged file at a path, which has the earlier file until then. An own file is linked,
// so that the download stays complete until the model is; where links are not supported it is
// moved.
func (s *Store) place(f Staged, path string) error {
	if f.Path == path {
		return nil
	}
	next := path + ".new"
	if err := removeIfPresent(next); err != nil {
		return err
	}
	if f.Cache != "" {
		if err := os.Symlink(f.Cache, next); err != nil {
			return err
		}
	} else if err := os.Link(f.Path, next); err != nil {
		if f.Shared {
			return err
		}
		return os.Rename(f.Path, path)
	}
	// Renaming has no effect if both names are links to one file.
	return errors.Join(os.Rename(next, path), removeIfPresent(next))
}

func removeIfPresent(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeOthers removes everything from the folder of a model but its description and one version.
// Processes that have files of other versions open keep them.
func removeOthers(dir, version string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != version && e.Name() != manifestName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// Remove removes a model, also a damaged one. Processes that have its files open keep them. Files
// in caches of other programs stay.
func (s *Store) Remove(ctx context.Context, name string) error {
	if err := ref.CheckName(name); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	dir := filepath.Join(s.dir, name)
	if _, err := os.Lstat(filepath.Join(dir, manifestName)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %s; `sandwich model ls` lists the pulled ones", ErrUnknown, name)
		}
		return err
	}
	_, unlock, err := s.Lock(ctx, storeKey, func() {})
	if err != nil {
		return err
	}
	defer unlock()
	// Without its description the model does not exist; the rest may be removed later.
	if err := os.Remove(filepath.Join(dir, manifestName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}

// Unfinished returns the unfinished downloads.
func (s *Store) Unfinished() (list []fetch.Unfinished, err error) {
	keys, err := s.keys()
	for _, key := range keys {
		if u, err := fetch.Inspect(s.base(key)); err == nil {
			list = append(list, u)
		}
	}
	return list, err
}

// RemoveUnfinished removes the unfinished downloads that no process continues, and returns their
// number and bytes on the disk.
func (s *Store) RemoveUnfinished(ctx context.Context) (n int, bytes int64, err error) {
	keys, err := s.keys()
	for _, key := range keys {
		inUse, stop := context.WithCancel(ctx)
		base, unlock, lockErr := s.Lock(inUse, key, stop)
		stop()
		if lockErr != nil {
			if !errors.Is(lockErr, context.Canceled) || ctx.Err() != nil {
				err = errors.Join(err, lockErr)
			}
			continue
		}
		u, _ := fetch.Inspect(base)
		if removeErr := fetch.Discard(base); removeErr != nil {
			err = errors.Join(err, removeErr)
		} else {
			n, bytes = n+1, bytes+u.Used
		}
		unlock()
	}
	return n, bytes, err
}
