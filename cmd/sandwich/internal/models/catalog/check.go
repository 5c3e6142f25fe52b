package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sandwich/cmd/sandwich/internal/hint"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/server/request"
)

// check refuses values that cannot work.
func (c *Catalog) check() error {
	switch n := len(c.Models); {
	case n == 0:
		return errors.New("there are no models; add the key models with a list")
	case n > maxModels:
		return fmt.Errorf("%d models are too many; use at most %d", n, maxModels)
	}
	owner := map[string]string{}
	for i := range c.Models {
		m := &c.Models[i]
		if err := m.check(); err != nil {
			return err
		}
		for _, name := range append([]string{m.Name}, m.Aliases...) {
			if other, taken := owner[name]; taken {
				return fmt.Errorf("%s names two models, %s and %s; use each name and alias once", name, other,
					cmp.Or(m.Model, "the embedded model"))
			}
			owner[name] = cmp.Or(m.Model, "the embedded model")
		}
	}
	return nil
}

func (m *Model) check() error {
	for _, name := range append([]string{m.Name}, m.Aliases...) {
		if err := checkName(name); err != nil {
			return err
		}
	}
	switch m.Load {
	case OnDemand, AtStart, Pinned:
	default:
		return fmt.Errorf("model %s: load %s is unknown; give start, demand or pinned", m.Name,
			show.Clip(string(m.Load), 20))
	}
	if m.Class != "" {
		if _, ok := request.ParseUrgency(m.Class); !ok {
			return fmt.Errorf("model %s: class %s is unknown; give reactive, proactive or a number", m.Name,
				show.Clip(m.Class, 20))
		}
	}
	if m.Context < 0 || m.Parallel < 0 {
		return fmt.Errorf("model %s: context or parallel is negative; give a number of at least 1, or leave it out",
			m.Name)
	}
	return nil
}

// checkName refuses names that are not safe in paths and addresses.
func checkName(name string) error {
	if len(name) > maxName || !validName.MatchString(name) || strings.Contains(name, "..") {
		return fmt.Errorf("%.80q is not a valid name of a model; use up to %d letters, digits, and . _ + : -", name,
			maxName)
	}
	return nil
}

// resolve adds aliases of names or of other aliases to their models.
func (c *Catalog) resolve(aliases map[string]string) error {
	var names []string
	model := map[string]*Model{}
	for i := range c.Models {
		m := &c.Models[i]
		for _, name := range append([]string{m.Name}, m.Aliases...) {
			names, model[name] = append(names, name), m
		}
	}
	for _, alias := range slices.Sorted(maps.Keys(aliases)) {
		if model[alias] != nil {
			return fmt.Errorf("%s is an alias and names a model too; use each name and alias once",
				show.Clip(alias, 40))
		}
		path := []string{alias}
		for to := aliases[alias]; ; to = aliases[to] {
			path = append(path, show.Clip(to, 40))
			if m := model[to]; m != nil {
				m.Aliases = append(m.Aliases, alias)
				break
			}
			if _, known := aliases[to]; !known {
				meant := ""
				if near := hint.Nearest(show.Clip(to, 60), names); near != "" {
					meant = fmt.Sprintf("; did you mean %s?", near)
				}
				return fmt.Errorf("alias %s: there is no model %s%s", show.Clip(alias, 40), show.Clip(to, 40), meant)
			}
			if len(path) > len(aliases)+1 {
				return fmt.Errorf("the aliases form a cycle: %s; let one of them name a model",
					strings.Join(path[:min(len(path), 6)], " -> "))
			}
		}
	}
	return nil
}
