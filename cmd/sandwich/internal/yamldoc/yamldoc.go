// Package yamldoc reads YAML files that have one document.
package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"
)

// Parse returns the content of the only document of a text, nil if it has none or an empty one.
func Parse(text []byte) (*yaml.Node, error) {
	in := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	if err := in.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	switch err := in.Decode(&second); {
	case err == nil:
		return nil, fmt.Errorf("line %d: the file has several documents; write one, without lines of ---", second.Line)
	case !errors.Is(err, io.EOF):
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(doc.Content) == 0 || IsNull(doc.Content[0]) {
		return nil, nil
	}
	return doc.Content[0], nil
}

// IsNull reports whether a key has no value, or the value null.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }
