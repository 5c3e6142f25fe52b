// Package catalog reads the models of `serve --models`: a YAML file, or a folder of GGUF files.
package catalog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/cmd/sandwich/internal/yamldoc"
	"sandwich/profiles/retention"
)

// Catalog lists the models of a server.
type Catalog struct {
	Path   string
	Memory int64 // budget in bytes; 0: not given
	Models []Model
}

// Model is one model of a catalog. Its JSON form serves to compare entries.
type Model struct {
	Name     string
	Aliases  []string
	Model    string // path, name of a pulled model, or reference; "" is the embedded model
	Plan     string // path of a bundle; "": the default choice
	Device   string // none, auto or an ID; "": that of the server
	Context  int    // tokens; 0: the default
	Parallel int    // requests at the same time; 0: that of the server
	Keys     string // path of a file with the API keys that may use the model; "": all
	Class    string // default class or priority of its requests; "": reactive
	Load     Policy
}

// Policy says when a model is loaded.
type Policy string

// Policies.
const (
	OnDemand Policy = "demand" // by the first request; unloaded when its memory is needed
	AtStart  Policy = "start"  // at the start of the server; unloaded when its memory is needed
	Pinned   Policy = "pinned" // at the start of the server; never unloaded
)

// Limits of a catalog.
const (
	maxBytes  = 1 << 20
	maxModels = 1000
	maxName   = 128
)

// validName matches names and aliases. They may have the form of ollama's, NAME:TAG.
var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+:-]*$`)

// Read reads a YAML file, or the GGUF files of a folder. Relative paths in the file are relative to
// its folder.
func Read(path string) (*Catalog, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("--models: %w", err)
	}
	c := &Catalog{Path: path}
	if info.IsDir() {
		err = c.readFolder()
	} else {
		err = c.readFile()
	}
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// laterPart matches the name of any part of a split model, firstPart that of the first part.
var laterPart, firstPart = regexp.MustCompile(`-\d{5}-of-\d{5}\.gguf$`), regexp.MustCompile(`-00001-of-\d{5}\.gguf$`)

// readFolder adds the GGUF files of the folder by name.
func (c *Catalog) readFolder() error {
	list, err := os.ReadDir(c.Path)
	if err != nil {
		return err
	}
	for _, f := range list {
		name := f.Name()
		if !strings.HasSuffix(name, ".gguf") || laterPart.MatchString(name) && !firstPart.MatchString(name) {
			continue
		}
		short := strings.TrimSuffix(firstPart.ReplaceAllString(name, ""), ".gguf")
		c.Models = append(c.Models, Model{Name: short, Model: filepath.Join(c.Path, name), Load: OnDemand})
	}
	if len(c.Models) == 0 {
		return errors.New("the folder has no GGUF file")
	}
	return nil
}

// body is the content of a file.
type body struct {
	Memory  string            `yaml:"memory"`
	Aliases map[string]string `yaml:"aliases"`
	Models  []entry           `yaml:"models"`
}

// entry is a model of a file.
type entry struct {
	Name     string   `yaml:"name"`
	Model    *string  `yaml:"model"`
	Aliases  []string `yaml:"aliases"`
	Plan     string   `yaml:"plan"`
	Device   string   `yaml:"device"`
	Context  int      `yaml:"context"`
	Parallel int      `yaml:"parallel"`
	Keys     string   `yaml:"keys"`
	Class    string   `yaml:"class"`
	Load     Policy   `yaml:"load"`
}

func (c *Catalog) readFile() error {
	data, err := retention.ReadRegular(c.Path, maxBytes)
	if err != nil {
		return err
	}
	top, err := yamldoc.Parse(data)
	if err != nil {
		return err
	}
	if top == nil {
		return errors.New("the file is empty; write a list of models")
	}
	if err := checkForms(top, topForms); err != nil {
		return err
	}
	var b body
	if err := top.Decode(&b); err != nil {
		return errors.New(strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", ""))
	}
	if b.Memory != "" {
		if c.Memory, err = flags.ParseBytes(b.Memory); err != nil || c.Memory == 0 {
			return fmt.Errorf("memory: %s is not a size; give one such as 12GiB", show.Clip(b.Memory, 40))
		}
	}
	for i := range b.Models {
		if err := c.add(&b.Models[i]); err != nil {
			return err
		}
	}
	return c.resolve(b.Aliases)
}

// add adds a model of a file.
func (c *Catalog) add(e *entry) error {
	if e.Name == "" {
		return fmt.Errorf("model %d has no name; add the key name", len(c.Models)+1)
	}
	if e.Model == nil {
		return fmt.Errorf("model %s: the key model is missing; give a path, a pulled model or a reference",
			show.Clip(e.Name, 40))
	}
	m := Model{Name: e.Name, Model: c.path(*e.Model), Aliases: e.Aliases, Plan: c.path(e.Plan), Device: e.Device,
		Context: e.Context, Parallel: e.Parallel, Keys: c.path(e.Keys), Class: e.Class, Load: e.Load}
	if m.Load == "" {
		m.Load = OnDemand
	}
	c.Models = append(c.Models, m)
	return nil
}

// path returns the path of a file relative to the catalog's folder if it exists, else the text
// unchanged, which may be a reference.
func (c *Catalog) path(text string) string {
	if text == "" || filepath.IsAbs(text) {
		return text
	}
	near := filepath.Join(filepath.Dir(c.Path), text)
	if _, err := os.Stat(near); err == nil {
		return near
	}
	return text
}
