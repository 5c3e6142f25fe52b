package config

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"

	"sandwich/cmd/sandwich/internal/hint"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/cmd/sandwich/internal/yamldoc"
	"sandwich/profiles/retention"
)

// maxFileBytes bounds a file of settings.
const maxFileBytes = 1 << 20

// file is a checked file of settings. Its keys are settings, which hold for all commands that have
// them, and names of commands, whose values are mappings of the same kind. A nil *file is empty.
type file struct {
	path string
	root *cobra.Command
	top  *yaml.Node // mapping; nil: the file is empty
}

// readFile reads a file and refuses keys that no command of root has.
func readFile(path string, root *cobra.Command) (*file, error) {
	data, err := retention.ReadRegular(path, maxFileBytes)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	f := &file{path: path, root: root}
	if f.top, err = yamldoc.Parse(data); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if f.top == nil {
		return f, nil
	}
	return f, f.check(f.top, root)
}

// check checks the keys of a command's mapping.
func (f *file) check(m *yaml.Node, c *cobra.Command) error {
	if m.Kind != yaml.MappingNode {
		return fmt.Errorf("%s: write settings as lines of the form name: value", f.at(m))
	}
	for i := 0; i < len(m.Content); i += 2 {
		key, value := m.Content[i], m.Content[i+1]
		for j := 0; j < i; j += 2 {
			if m.Content[j].Value == key.Value && (m.Content[j+1].Kind == yaml.MappingNode) ==
				(value.Kind == yaml.MappingNode) {
				return fmt.Errorf("%s: %s is given twice", f.at(key), show.Clip(key.Value, 40))
			}
		}
		if err := f.checkEntry(key, value, c); err != nil {
			return err
		}
	}
	return nil
}

func (f *file) checkEntry(key, value *yaml.Node, c *cobra.Command) error {
	sub, names := child(c, key.Value), settingNames(c)
	known := slices.Contains(names, key.Value)
	name := show.Clip(key.Value, 40)
	switch {
	case value.Kind == yaml.MappingNode && sub != nil:
		return f.check(value, sub)
	case value.Kind == yaml.MappingNode && known:
		return fmt.Errorf("%s: %s is a setting; give a value or a list of values", f.at(key), name)
	case value.Kind == yaml.MappingNode:
		return f.unknown(key, "command", c, commandNames(c))
	case yamldoc.IsNull(value) && sub != nil:
		return nil // a command whose settings are all comments
	case !known && sub != nil && key.Value != fileFlag:
		return fmt.Errorf("%s: %s is a command; write its settings below it, indented", f.at(key), name)
	case !known:
		return f.unknown(key, "setting", c, names)
	}
	if _, err := values(value); err != nil {
		return fmt.Errorf("%s: %s: %w", f.at(value), key.Value, err)
	}
	return nil
}

// unknown returns the error for a key, with the most similar of the known names, or the commands
// that have such a setting.
func (f *file) unknown(key *yaml.Node, what string, c *cobra.Command, names []string) error {
	of := ""
	if c.HasParent() {
		of = " of " + c.CommandPath()
	}
	meant := ""
	if near := hint.Foreign(key.Value, names); near != "" {
		meant = fmt.Sprintf("; did you mean %s?", near)
	} else if owners := ownersOf(f.root, key.Value); what == "setting" && len(owners) > 0 {
		meant = "; it is one of " + show.Join(" and ", owners[:min(len(owners), maxOwners)]...)
	} else if near := hint.Nearest(show.Clip(key.Value, 60), names); near != "" {
		meant = fmt.Sprintf("; did you mean %s?", near)
	}
	return fmt.Errorf("%s: unknown %s%s: %s%s", f.at(key), what, of, show.Clip(key.Value, 40), meant)
}

// maxOwners limits the commands that an error lists.
const maxOwners = 3

// ownersOf returns the paths of the commands below c that have a setting.
func ownersOf(c *cobra.Command, setting string) (paths []string) {
	for _, sub := range c.Commands() {
		if f := sub.LocalFlags().Lookup(setting); f != nil && isSetting(f) && !sub.Hidden {
			paths = append(paths, sub.CommandPath())
		}
		paths = append(paths, ownersOf(sub, setting)...)
	}
	return paths
}

// at returns the path and the line of a node.
func (f *file) at(n *yaml.Node) string { return fmt.Sprintf("%s:%d", f.path, n.Line) }

// lookup returns the values of a setting for a command and where they are. The mapping of the
// command comes before those of its parents. at is "" if the file does not have the setting.
func (f *file) lookup(c *cobra.Command, setting string) (list []string, at string) {
	if f == nil || f.top == nil {
		return nil, ""
	}
	m := f.top
	for _, name := range append([]string{""}, path(c)...) {
		if name != "" {
			if m = entry(m, name, true); m == nil {
				break
			}
		}
		if v := entry(m, setting, false); v != nil {
			list, _ = values(v) // readFile has checked them
			at = f.at(v)
		}
	}
	return list, at
}

// path returns the names of a command and its parents, without the root.
func path(c *cobra.Command) (names []string) {
	for ; c.HasParent(); c = c.Parent() {
		names = append(names, c.Name())
	}
	slices.Reverse(names)
	return names
}

// entry returns the value of a key that is a mapping, or of one that is not. It returns nil if the
// mapping has no such key, or one without a value.
func entry(m *yaml.Node, key string, mapping bool) *yaml.Node {
	for i := 0; i < len(m.Content); i += 2 {
		v := m.Content[i+1]
		if m.Content[i].Value == key && (v.Kind == yaml.MappingNode) == mapping && !yamldoc.IsNull(v) {
			return v
		}
	}
	return nil
}

// values returns a scalar, or the scalars of a list, as they are written.
func values(n *yaml.Node) (list []string, err error) {
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		nodes = n.Content
	}
	for _, v := range nodes {
		if v.Kind != yaml.ScalarNode || yamldoc.IsNull(v) {
			return nil, errors.New("give a value or a list of values")
		}
		list = append(list, v.Value)
	}
	if len(list) == 0 {
		return nil, errors.New("the list is empty; give at least one value")
	}
	return list, nil
}

// child returns the subcommand of c with a name, or nil.
func child(c *cobra.Command, name string) *cobra.Command {
	for _, sub := range c.Commands() {
		if sub.Name() == name && !sub.Hidden {
			return sub
		}
	}
	return nil
}

func commandNames(c *cobra.Command) (names []string) {
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return names
}

// settingNames returns the settings of a command and of those below it.
func settingNames(c *cobra.Command) (names []string) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if isSetting(f) {
			names = append(names, f.Name)
		}
	})
	for _, sub := range c.Commands() {
		names = append(names, settingNames(sub)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
