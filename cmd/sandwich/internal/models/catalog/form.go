package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"sandwich/cmd/sandwich/internal/hint"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/cmd/sandwich/internal/yamldoc"
)

// form says what the value of a key is, as part of an error.
type form string

const (
	text    form = "a value"
	number  form = "a whole number"
	list    form = "a list, such as [fast, default]"
	mapping form = "a mapping, such as {fast: chat}"
	entries form = "a list with an entry for each model, such as - {name: chat, model: llama.gguf}"
)

var (
	topForms   = map[string]form{"memory": text, "aliases": mapping, "models": entries}
	entryForms = map[string]form{"name": text, "model": text, "aliases": list, "plan": text, "device": text,
		"context": number, "parallel": number, "keys": text, "class": text, "load": text}
)

// synonyms maps keys of other programs, and names of flags, to keys.
var synonyms = map[string]string{"ctx": "context", "ctx-size": "context", "ctx_size": "context", "num_ctx": "context",
	"n_ctx": "context", "context_length": "context", "path": "model", "file": "model", "gguf": "model", "ref": "model",
	"reference": "model", "source": "model", "id": "name", "np": "parallel", "n_parallel": "parallel",
	"api-key-file": "keys", "api_key_file": "keys", "priority": "class", "preload": "load", "pinned": "load"}

// checkForms refuses keys of a mapping that are unknown or given twice, and values of another form
// than forms has for their keys.
func checkForms(m *yaml.Node, forms map[string]form) error {
	if m.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: write settings as lines of the form name: value", m.Line)
	}
	var seen []string
	for i := 0; i < len(m.Content); i += 2 {
		key, value := m.Content[i], m.Content[i+1]
		want, known := forms[key.Value]
		switch {
		case slices.Contains(seen, key.Value):
			return fmt.Errorf("line %d: %s is given twice", key.Line, show.Clip(key.Value, 40))
		case !known:
			return fmt.Errorf("line %d: unknown key %s%s", key.Line, show.Clip(key.Value, 40), meant(key.Value, forms))
		}
		if err := checkForm(key, value, want); err != nil {
			return err
		}
		seen = append(seen, key.Value)
	}
	return nil
}

// meant names the key that an unknown one may stand for, else all keys, as the end of a sentence.
func meant(key string, forms map[string]form) string {
	near := synonyms[key]
	if _, known := forms[near]; !known {
		near = hint.Nearest(show.Clip(key, 60), slices.Sorted(maps.Keys(forms)))
	}
	if near == "" {
		return "; the keys are " + strings.Join(slices.Sorted(maps.Keys(forms)), ", ")
	}
	return fmt.Sprintf("; did you mean %s?", near)
}

// checkForm refuses a value that has another form than its key.
func checkForm(key, value *yaml.Node, want form) error {
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	if yamldoc.IsNull(value) {
		return fmt.Errorf("line %d: %s has no value; give %s, or leave the key out", key.Line, key.Value, want)
	}
	ok := false
	switch want {
	case text:
		ok = value.Kind == yaml.ScalarNode
	case number:
		_, err := strconv.Atoi(value.Value)
		ok = value.Kind == yaml.ScalarNode && err == nil
	case mapping:
		ok = value.Kind == yaml.MappingNode && all(value.Content)
	case list:
		ok = value.Kind == yaml.SequenceNode && all(value.Content)
	case entries:
		if ok = value.Kind == yaml.SequenceNode; ok {
			return checkEntries(value)
		}
	}
	if ok {
		return nil
	}
	given := ""
	if value.Kind == yaml.ScalarNode {
		given = " " + show.Clip(value.Value, 40)
	}
	return fmt.Errorf("line %d: %s%s is not valid; give %s", value.Line, key.Value, given, want)
}

// all reports whether all nodes are values without parts.
func all(nodes []*yaml.Node) bool {
	return !slices.ContainsFunc(nodes, func(n *yaml.Node) bool {
		return n.Kind != yaml.ScalarNode || yamldoc.IsNull(n)
	})
}

// checkEntries checks the models of a file.
func checkEntries(models *yaml.Node) error {
	for _, m := range models.Content {
		if m.Kind == yaml.AliasNode {
			m = m.Alias
		}
		if m.Kind == yaml.ScalarNode {
			return fmt.Errorf("line %d: %s is not an entry; write one such as - {name: chat, model: llama.gguf}",
				m.Line, show.Clip(m.Value, 40))
		}
		if err := checkForms(m, entryForms); err != nil {
			return err
		}
	}
	return nil
}
