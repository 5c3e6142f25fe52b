// Package store manages the folder of pulled models. Each model has a folder with model.json, which
// names the current version, and a folder of GGUF files for that version. model.json is replaced
// atomically after the files are complete, so that a model is always a whole one.
package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sandwich/cmd/sandwich/internal/models/ref"
	"sandwich/cmd/sandwich/internal/models/source"
	"sandwich/profiles/retention"
)

const (
	formatVersion = 1
	manifestName  = "model.json"
	partialDir    = ".partial" // unfinished downloads
	lockSuffix    = ".lock"
	maxManifest   = 1 << 20
)

// Store is a folder of models. It may be used by several processes.
type Store struct{ dir string }

// Model is a pulled model. Its JSON form is stored in model.json.
type Model struct {
	Format    int       `json:"format"`
	Name      string    `json:"name"`
	Reference string    `json:"reference"`
	Revision  string    `json:"revision,omitempty"`
	Verified  bool      `json:"verified"` // every checksum was known before the download
	Pulled    time.Time `json:"pulled"`
	Folder    string    `json:"folder"` // of the files
	Files     []File    `json:"files"`
}

// File is a file of a model.
type File struct {
	Name     string    `json:"name"`
	Size     int64     `json:"size"`
	SHA256   string    `json:"sha256"`
	Cache    string    `json:"cache,omitempty"`   // path of the file in another program's cache; "": an own file
	Modified time.Time `json:"modified,omitzero"` // of a file in a cache
}

// Bytes returns the sum of the sizes of the files.
func (m *Model) Bytes() (sum int64) {
	for _, f := range m.Files {
		sum += f.Size
	}
	return sum
}

// Open returns the store in a folder, which is created when it is needed. It rejects a folder in
// which any user may replace files.
func Open(dir string) (*Store, error) {
	st, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !st.IsDir():
		return nil, fmt.Errorf("%s is not a folder; name a folder for models in SANDWICH_MODELS", dir)
	case st.Mode().Perm()&0o002 != 0:
		return nil, fmt.Errorf("any user may write to the folder %s; remove that permission with chmod o-w", dir)
	}
	return &Store{dir}, nil
}

// Dir returns the path of the folder.
func (s *Store) Dir() string { return s.dir }

// prepare creates the folders of the store.
func (s *Store) prepare() error { return retention.MakeDir(filepath.Join(s.dir, partialDir), 0o700) }

// ErrUnknown is wrapped if there is no model of a name.
var ErrUnknown = errors.New("no such model")

// Get returns the model of a name.
func (s *Store) Get(name string) (*Model, error) {
	if err := ref.CheckName(name); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	path := filepath.Join(s.dir, name, manifestName)
	data, err := retention.ReadRegular(path, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s; `sandwich model ls` lists the pulled ones", ErrUnknown, name)
	}
	if err != nil {
		return nil, err
	}
	var m Model
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("%s is damaged (%w); remove the model with `sandwich model rm %s`", path, err, name)
	}
	if err := m.check(name); err != nil {
		return nil, fmt.Errorf("%s is not usable: %w; remove the model with `sandwich model rm %s`", path, err, name)
	}
	return &m, nil
}

// check rejects a description with names that could lead out of the model's folder.
func (m *Model) check(name string) error {
	if m.Format != formatVersion {
		return fmt.Errorf("its format is %d, expected is %d", m.Format, formatVersion)
	}
	if m.Name != name || len(m.Files) == 0 {
		return errors.New("it describes another model")
	}
	names := []string{m.Folder}
	for _, f := range m.Files {
		names = append(names, f.Name)
	}
	for _, n := range names {
		if err := ref.CheckName(n); err != nil {
			return err
		}
	}
	return nil
}

// List returns the models in the order of their names, and errors about those that cannot be read.
func (s *Store) List() (models []*Model, damaged []error, err error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	for _, e := range entries {
		if !e.IsDir() || ref.CheckName(e.Name()) != nil {
			continue
		}
		m, err := s.Get(e.Name())
		switch {
		case errors.Is(err, ErrUnknown): // being installed or removed
		case err != nil:
			damaged = append(damaged, err)
		default:
			models = append(models, m)
		}
	}
	return models, damaged, err
}

// ByReference returns the model that was pulled by a reference.
func (s *Store) ByReference(reference string) (*Model, error) {
	models, _, err := s.List()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(models, func(m *Model) bool { return m.Reference == reference })
	if i < 0 {
		return nil, fmt.Errorf("%w: %s", ErrUnknown, reference)
	}
	return models[i], nil
}

// Path returns the path of the first file of a model. It returns an error if a file is missing or
// was changed.
func (s *Store) Path(m *Model) (string, error) {
	for _, f := range m.Files {
		path := s.filePath(m, f)
		st, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", s.damaged(m, path+" is missing")
		case err != nil:
			return "", err
		case st.Size() != f.Size, f.Cache != "" && !st.ModTime().Equal(f.Modified):
			return "", s.damaged(m, path+" was changed since it was pulled")
		}
	}
	return s.filePath(m, m.Files[0]), nil
}

func (s *Store) damaged(m *Model, what string) error {
	return fmt.Errorf("the model %s is damaged: %s; pull it again with `sandwich pull %s`", m.Name, what, m.Reference)
}

func (s *Store) filePath(m *Model, f File) string {
	return filepath.Join(s.dir, m.Name, m.Folder, f.Name)
}

// FindFile returns the path of a file with a checksum and a size among the models, "" if there is
// none. Files in caches of other programs do not count.
func (s *Store) FindFile(sum string, size int64) string {
	models, _, err := s.List()
	if err != nil || !source.IsSHA256(sum) {
		return ""
	}
	for _, m := range models {
		for _, f := range m.Files {
			path := s.filePath(m, f)
			if f.SHA256 != sum || f.Size != size || f.Cache != "" {
				continue
			}
			if st, err := os.Lstat(path); err == nil && st.Mode().IsRegular() && st.Size() == size {
				return path
			}
		}
	}
	return ""
}

// base returns the start of the paths of an unfinished download.
func (s *Store) base(key string) string { return filepath.Join(s.dir, partialDir, key) }

// keys returns the keys of unfinished downloads.
func (s *Store) keys() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, partialDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var keys []string
	for _, e := range entries {
		if key, ok := strings.CutSuffix(e.Name(), ".part"); ok && e.Type().IsRegular() {
			keys = append(keys, key)
		}
	}
	return keys, err
}
