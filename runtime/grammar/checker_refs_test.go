package grammar

import (
	"regexp"
	"strings"
)

// target is the schema that a reference means: by its place, or by its anchor anywhere.
func (c checker) target(ref string) any {
	at := c.root
	if name, ok := strings.CutPrefix(ref, "#"); ok && name != "" && name[0] != '/' {
		return anchored(c.root, name)
	}
	for _, name := range strings.Split(ref, "/")[1:] {
		at = at.(map[string]any)[name]
	}
	return at
}

func anchored(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		if v["$dynamicAnchor"] == name || v["$anchor"] == name {
			return v
		}
		for _, x := range v {
			if found := anchored(x, name); found != nil {
				return found
			}
		}
	case []any:
		for _, x := range v {
			if found := anchored(x, name); found != nil {
				return found
			}
		}
	}
	return nil
}

// evaluated notes the members that a schema which holds says something of; top tells that its own
// unevaluatedProperties does not count.
func (c checker) evaluated(s any, v map[string]any, seen map[string]bool, top bool) {
	o, _ := s.(map[string]any)
	for key, x := range o {
		switch key {
		case "$ref", "$dynamicRef":
			c.evaluated(c.target(x.(string)), v, seen, false)
		case "allOf", "anyOf", "oneOf":
			for _, y := range x.([]any) {
				if c.valid(y, v) {
					c.evaluated(y, v, seen, false)
				}
			}
		case "if":
			branch := o["else"]
			if c.valid(x, v) {
				c.evaluated(x, v, seen, false)
				branch = o["then"]
			}
			c.evaluated(branch, v, seen, false)
		case "dependentSchemas":
			for n, y := range x.(map[string]any) {
				if _, has := v[n]; has {
					c.evaluated(y, v, seen, false)
				}
			}
		}
	}
	patterns, _ := o["patternProperties"].(map[string]any)
	props, _ := o["properties"].(map[string]any)
	_, rest := o["additionalProperties"]
	_, others := o["unevaluatedProperties"]
	for n := range v {
		_, declared := props[n]
		for re := range patterns {
			declared = declared || regexp.MustCompile(re).MatchString(n)
		}
		seen[n] = seen[n] || declared || rest || others && !top
	}
}

// evaluatedItems is how many of the first items a schema says something of; top as in evaluated.
func (c checker) evaluatedItems(s any, v []any, top bool) (n int) {
	o, _ := s.(map[string]any)
	for key, x := range o {
		switch key {
		case "$ref", "$dynamicRef":
			n = max(n, c.evaluatedItems(c.target(x.(string)), v, false))
		case "allOf", "anyOf", "oneOf":
			for _, y := range x.([]any) {
				if c.valid(y, v) {
					n = max(n, c.evaluatedItems(y, v, false))
				}
			}
		case "prefixItems":
			n = max(n, len(x.([]any)))
		case "items":
			n = len(v)
		case "unevaluatedItems":
			if !top {
				n = len(v)
			}
		}
	}
	return n
}
