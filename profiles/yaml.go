package profiles

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"sandwich/internal/message"
)

// Limits of YAML documents from untrusted sources. A yaml.v3 node takes about 160 bytes, so the
// number of nodes bounds the memory.
const (
	// MaxYAMLBytes is the largest document DecodeYAML reads.
	MaxYAMLBytes = 16 << 20
	maxYAMLNodes = 1 << 19
	maxYAMLDepth = 32
)

// ErrYAML is wrapped by every error of DecodeYAML.
var ErrYAML = errors.New("unusable YAML")

// DecodeYAML decodes one document into out. It rejects documents that are too large or too deeply
// nested, have anchors, aliases, unknown fields or duplicate keys, or are followed by a second
// document; the error is ErrYAML. Memory is limited to some hundred bytes per node and maxYAMLNodes
// nodes.
func DecodeYAML(data []byte, out any) error {
	if len(data) > MaxYAMLBytes {
		return fmt.Errorf("%w: %d bytes, the limit is %d", ErrYAML, len(data), MaxYAMLBytes)
	}
	if n := separators(data); n > maxYAMLNodes {
		return fmt.Errorf("%w: more than %d values", ErrYAML, maxYAMLNodes)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	doc := wholeText{out: out}
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, ErrYAML):
		return err
	case errors.Is(err, io.EOF), err == nil && !doc.seen:
		return fmt.Errorf("%w: the document is empty", ErrYAML)
	case err != nil:
		return fmt.Errorf("%w: %s", ErrYAML, oneLine(err))
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: there is more than one document", ErrYAML)
	}
	return nil
}

// wholeText checks the nodes of a document before they are decoded, so that the text is parsed
// once.
type wholeText struct {
	out  any
	seen bool
}

// UnmarshalYAML implements yaml.Unmarshaler; the decoder calls it for everything but null.
func (d *wholeText) UnmarshalYAML(decode func(any) error) error {
	d.seen = true
	var root nodeOf
	if err := decode(&root); err != nil {
		return err
	}
	if err := plainNode(root.node, 0); err != nil {
		return err
	}
	return decode(d.out)
}

// nodeOf receives a node as it was parsed.
type nodeOf struct{ node *yaml.Node }

func (x *nodeOf) UnmarshalYAML(n *yaml.Node) error {
	x.node = n
	return nil
}

// unknownField matches the yaml package's error for an unknown field, which contains the name of a
// Go type.
var unknownField = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`field (\S+) not found in type \S+`)
})

// oneLine joins the lines of an error of the yaml package and truncates the result.
func oneLine(err error) string {
	text := strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: unmarshal errors:")), " ")
	return message.Clip(unknownField().ReplaceAllString(text, "unknown field $1"), 300)
}

// separators returns an upper bound of the number of nodes: each node follows one of these
// characters or starts the text.
func separators(data []byte) int {
	n := 1
	for _, c := range data {
		switch c {
		case '\n', '\r', ',', '[', '{', ':', '-', '?':
			n++
		}
	}
	return n
}

// plainNode rejects anchors, aliases, custom tags and deep nesting, which YAML bombs consist of.
func plainNode(n *yaml.Node, depth int) error {
	switch {
	case depth > maxYAMLDepth:
		return fmt.Errorf("%w: line %d is nested more than %d deep", ErrYAML, n.Line, maxYAMLDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return fmt.Errorf("%w: line %d has an anchor or alias, which are not allowed here", ErrYAML, n.Line)
	case n.Style&yaml.TaggedStyle != 0:
		return fmt.Errorf("%w: line %d has the tag %s, tags are not allowed here", ErrYAML, n.Line, n.Tag)
	}
	for _, c := range n.Content {
		if err := plainNode(c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// EncodeYAML encodes v with an indentation of two spaces. Equal values give equal bytes.
func EncodeYAML(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := yaml.NewEncoder(&buf)
	enc.SetIndent(2)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// FlowYAML encodes v as a node in flow style, one line in the file. v must not have a MarshalYAML
// method.
func FlowYAML(v any) (*yaml.Node, error) {
	var n yaml.Node
	if err := n.Encode(v); err != nil {
		return nil, err
	}
	n.Style = yaml.FlowStyle
	return &n, nil
}
