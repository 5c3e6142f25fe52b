package hwloc

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"sandwich/internal/message"
	"sandwich/topotree"
)

// Limits of an XML description, above those of the largest machines that Linux supports.
const (
	maxXMLBytes   = 64 << 20
	maxXMLObjects = 1 << 17
	maxXMLDepth   = 128
	maxXMLSets    = 3 * topotree.MaxPUs
	maxXMLText    = 1 << 20
)

// ReadXML parses an hwloc XML export of format 1.x, 2.x or 3.x. It ignores document type
// declarations and expands no entities except the five of XML. Size, depth and number of objects
// are limited.
func ReadXML(in io.Reader) (*topotree.Machine, error) {
	x := xmlReader{m: &topotree.Machine{}}
	if err := x.read(&limited{in: in, left: maxXMLBytes}); err != nil {
		return nil, fmt.Errorf("reading hwloc XML: %w", err)
	}
	if err := x.complete(); err != nil {
		return nil, fmt.Errorf("reading hwloc XML: %w", err)
	}
	m, err := topotree.Build(x.m)
	if err != nil {
		return nil, fmt.Errorf("reading hwloc XML: %w", err)
	}
	return m, nil
}

// limited is an io.LimitReader that returns an error at the limit.
type limited struct {
	in   io.Reader
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("the document is larger than %d MiB", maxXMLBytes>>20)
	}
	n, err := l.in.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// element is an open element.
type element struct {
	name   string // tag name
	kind   string // type of the object
	caches []topotree.MemoryCache
}

// xmlReader is the state of one reader.
type xmlReader struct {
	m       *topotree.Machine
	version string
	started bool
	stack   []element
	objects int
	pus     topotree.CPUSet
	puList  []int
	allowed topotree.CPUSet

	inNode    bool // infos belong to the last of m.Memory
	inGroup   bool // infos belong to the last of m.Objects, a group
	table     xmlDistances
	text      strings.Builder
	coreTypes []xmlCoreType
}

func (x *xmlReader) read(in io.Reader) error {
	dec := xml.NewDecoder(in)
	dec.Strict = true
	dec.CharsetReader = func(charset string, in io.Reader) (io.Reader, error) {
		if strings.EqualFold(charset, "us-ascii") || strings.EqualFold(charset, "iso-8859-1") {
			return in, nil // hwloc writes ASCII regardless of the declaration
		}
		return nil, fmt.Errorf("encoding %q is not UTF-8", message.Clip(charset, 60))
	}
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("not well-formed: %w", err)
		}
		switch t := tok.(type) {
		case xml.StartElement:
			err = x.open(t)
		case xml.EndElement:
			err = x.close()
		case xml.CharData:
			if x.text.Len()+len(t) < maxXMLText {
				x.text.Write(t)
			}
		}
		if err != nil {
			line, _ := dec.InputPos()
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	if !x.started {
		return fmt.Errorf("there is no topology element; export one with lstopo --of xml")
	}
	return nil
}

// attrs is the attribute list of an element.
type attrs []xml.Attr

func (a attrs) get(name string) string {
	for _, at := range a {
		if at.Name.Local == name {
			return at.Value
		}
	}
	return ""
}

// number returns a decimal attribute, or missing.
func (a attrs) number(name string, missing int64) int64 {
	text := a.get(name)
	if text == "" {
		return missing
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > 1<<56 {
		return missing
	}
	return n
}

func (x *xmlReader) open(t xml.StartElement) error {
	if len(x.stack) >= maxXMLDepth {
		return fmt.Errorf("elements nest deeper than %d", maxXMLDepth)
	}
	a, name := attrs(t.Attr), t.Name.Local
	x.text.Reset()
	x.stack = append(x.stack, element{name: name})
	if !x.started {
		if name != "topology" {
			return fmt.Errorf("the root element is %q, not a topology", message.Clip(name, 60))
		}
		x.started, x.version = true, a.get("version")
		if v := x.version; v != "" && !strings.HasPrefix(v, "1.") && !strings.HasPrefix(v, "2.") &&
			!strings.HasPrefix(v, "3.") {
			return fmt.Errorf("format version %q is not 1.x, 2.x or 3.x", message.Clip(v, 60))
		}
		x.m.Source = "hwloc xml " + x.formatName()
		return nil
	}
	switch name {
	case "object":
		x.inNode, x.inGroup = false, false
		return x.openObject(a)
	case "info":
		x.info(a.get("name"), a.get("value"))
	case "cpukind":
		return x.openKind(a)
	case "distances2", "distances":
		x.table = xmlDistances{kind: a.get("type"), by: a.get("indexing"), base: a.get("latency_base"),
			count: a.number("nbobjs", 0)}
	case "latency":
		x.table.latency(a.get("value"))
	}
	return nil
}

func (x *xmlReader) formatName() string {
	if x.version == "" {
		return "1.x"
	}
	return message.Clip(x.version, 60)
}

func (x *xmlReader) close() error {
	top := x.stack[len(x.stack)-1]
	x.stack = x.stack[:len(x.stack)-1]
	switch top.name {
	case "object":
		x.inNode, x.inGroup = false, false
	case "indexes":
		return x.table.addIndexes(x.text.String())
	case "u64values":
		return x.table.addValues(x.text.String())
	case "distances2", "distances":
		x.table.finish(x.m)
	}
	x.text.Reset()
	return nil
}

// info processes a name and value of an object, a CPU kind or the topology, which has most of them
// since format 3.0.
func (x *xmlReader) info(name, value string) {
	if len(x.stack) > 1 && x.stack[len(x.stack)-2].name == "cpukind" {
		x.coreTypes[len(x.coreTypes)-1].info(name, value)
		return
	}
	switch name {
	case "Architecture":
		x.m.Arch = value
	case "OSRelease":
		x.m.Kernel = value
	case "CPUVendor":
		if x.m.Arch == "" && (strings.HasSuffix(value, "Intel") || strings.HasSuffix(value, "AMD") ||
			value == "HygonGenuine") {
			x.m.Arch = "x86_64" // exports of a CPUID dump lack the architecture
		}
	case "CPUModel":
		if x.m.Model == "" {
			x.m.Model = strings.Join(strings.Fields(value), " ")
		}
	case "Type":
		if x.inNode && value == "GPUMemory" {
			x.m.Memory[len(x.m.Memory)-1].Device = true
		} else if x.inGroup && value == "Cluster" {
			x.m.Objects[len(x.m.Objects)-1].Kind = topotree.KindCluster
		}
	}
}
