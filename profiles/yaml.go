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
)

// Limits on a YAML document that may come from a stranger. A yaml.v3 node costs about 160 bytes of
// memory, so the bound that matters is the number of nodes; each node needs one of the separators
// counted by separators.
const (
	// MaxYAMLBytes is the largest document DecodeYAML reads.
	MaxYAMLBytes = 16 << 20
	maxYAMLNodes = 1 << 19
	maxYAMLDepth = 32
)

// ErrYAML is wrapped by every refusal of DecodeYAML.
var ErrYAML = errors.New("unusable YAML")

// DecodeYAML decodes one document into out. Documents that are too large, have anchors or aliases,
// are nested absurdly, have fields that out does not know, keys that occur twice, or a second
// document are refused with ErrYAML. Memory stays within some hundred bytes per node and
// maxYAMLNodes nodes, whatever the input.
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
		return fmt.Errorf("%w: something follows the first document", ErrYAML)
	}
	return nil
}

// wholeText looks at the nodes of a text before they become values, so that it is parsed once.
type wholeText struct {
	out  any
	seen bool
}

// UnmarshalYAML is called by the decoder with everything but null.
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

// nodeOf takes a node as it was parsed.
type nodeOf struct{ node *yaml.Node }

func (x *nodeOf) UnmarshalYAML(n *yaml.Node) error {
	x.node = n
	return nil
}

// unknownField is how the YAML package says that a field has no place in a Go type, whose name
// means nothing to a reader.
var unknownField = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`field (\S+) not found in type \S+`)
})

// oneLine joins the lines of an error of the YAML package, which may list one for each field, and
// keeps the first few.
func oneLine(err error) string {
	text := strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: unmarshal errors:")), " ")
	text = unknownField().ReplaceAllString(text, "unknown field $1")
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "..."
	}
	return text
}

// separators bounds the number of nodes of a document from above: a node starts at the beginning of
// the text, or after one of these.
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

// plainNode refuses anchors, aliases, custom tags and deep nesting: no file of ours has them, and
// they are what YAML bombs are made of.
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

// EncodeYAML renders v with two-space indentation. Equal values give equal bytes.
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

// FlowYAML encodes v as a node in flow style, one line in the file: for rows of tables. v must not
// have a MarshalYAML method itself.
func FlowYAML(v any) (*yaml.Node, error) {
	var n yaml.Node
	if err := n.Encode(v); err != nil {
		return nil, err
	}
	n.Style = yaml.FlowStyle
	return &n, nil
}
