package hwloc_test

import (
	"io"
	"runtime"
	"strings"
	"testing"

	"sandwich/internal/message"
	"sandwich/topotree"
	"sandwich/topotree/hwloc"
)

// repeated yields a document of unlimited size without holding it: a head, then the same element n
// times.
type repeated struct {
	head, body string
	n          int
	rest       string
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.rest == "" {
		switch {
		case r.head != "":
			r.rest, r.head = r.head, ""
		case r.n > 0:
			r.rest = r.body
			r.n--
		default:
			return 0, io.EOF
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

const xmlHead = `<?xml version="1.0"?><topology version="2.0">`

func TestXMLRefuses(t *testing.T) {
	laughs := `<?xml version="1.0"?><!DOCTYPE topology [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><topology version="2.0"><info name="x" value="&c;"/></topology>`
	cases := map[string]struct {
		in   io.Reader
		want string
	}{
		"empty":            {strings.NewReader(""), "no topology element"},
		"not xml":          {strings.NewReader("hello"), "no topology element"},
		"another document": {strings.NewReader("<html/>"), "not a topology"},
		"future":           {strings.NewReader(`<topology version="4.1"/>`), "not 1.x, 2.x or 3.x"},
		"no PU":            {strings.NewReader(xmlHead + `<object type="Machine" cpuset="0x3"/></topology>`), "no PU"},
		"cut off":          {strings.NewReader(xmlHead + `<object type="Machine" cpuset="0x3">`), "not well-formed"},
		"billion laughs":   {strings.NewReader(laughs), "not well-formed"},
		"deep":             {&repeated{head: xmlHead, body: `<object type="Misc">`, n: 1e6}, "nest deeper"},
		"many objects": {&repeated{head: xmlHead, body: `<object type="Misc"/>`, n: 1e6},
			"more than 131072 objects"},
		"many caches": {&repeated{head: xmlHead, body: `<object type="L2Cache" cpuset="0x1"/>`, n: 1e6},
			"more than 49152"},
		"endless": {&repeated{head: xmlHead, body: strings.Repeat(" ", 1<<16), n: 1e9}, "larger than 64 MiB"},
		"PU twice": {strings.NewReader(xmlHead +
			`<object type="PU" os_index="0"/><object type="PU" os_index="0"/></topology>`), "occurs twice"},
		"PU far away": {strings.NewReader(xmlHead + `<object type="PU" os_index="99999999"/></topology>`),
			"not in 0 to"},
		"wrong PU": {strings.NewReader(xmlHead + `<object type="PU" os_index="1" cpuset="0x1"/></topology>`),
			"is inconsistent"},
		"bad mask": {strings.NewReader(xmlHead + `<object type="Core" cpuset="0xzz"/></topology>`),
			"not a 32-bit hexadecimal word"},
		"infinite set": {strings.NewReader(xmlHead + `<object type="Machine" cpuset="0xf...f"/></topology>`),
			"not a 32-bit hexadecimal word"},
	}
	for name, c := range cases {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := hwloc.ReadXML(c.in)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 256<<20 {
			t.Errorf("%s: %d MiB on the heap", name, held>>20)
		}
	}
}

func TestSyntheticRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"": "there is no level", "pack:0": "at least 1", "pack:-1": "at least 1", "pack:x": "at least 1",
		"blob:2 pu:2":          "is not a level",
		"core:1000000000 pu:1": "more than 16384 PUs", "pack:1000 numa:1000 core:1000": "more than 16384 PUs",
		"pu:2 core:2": "follows pu", "core:2 core:2 pu:1": "occurs twice",
		"pack:2 pu:2(indexes=0,1)": "has 2 indexes for 4",
		"pu:2(indexes=1,1)":        "duplicate index", "pu:2(indexes=0,-1)": "list of numbers", "pu:2(": "parentheses",
		"pu:2)":               "parentheses",
		"l3:1(size=abc) pu:1": "not a size", "[numa pu:2": "no closing bracket", strings.Repeat("group:1 ",
			40) + "pu:1": "more than 32 levels",
		strings.Repeat("a", 1<<18+1): "longer than",
	} {
		if m, err := hwloc.ReadSynthetic(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: machine %v, error %v, want %q", message.Clip(text, 60), m != nil, err, want)
		}
	}
}

func TestSyntheticCounts(t *testing.T) {
	m, err := hwloc.ReadSynthetic("pack:2 numa:2(memory=64GiB) l3:4(size=16MiB) l2:1(size=512kB) core:4 pu:2")
	if err != nil {
		t.Fatal(err)
	}
	s := m.Summary()
	if s.Packages != 2 || s.NUMANodes != 4 || s.L3 != 16 || s.Cores != 64 || s.PUs != 128 || s.LLC != 16 {
		t.Errorf("%+v", s)
	}
	if m.Memory[0].Bytes != 64<<30 || m.Tree.Level(m.Tree.LevelOf(topotree.KindL3))[0].Bytes != 16<<20 {
		t.Error("sizes were not read")
	}
	if m, err = hwloc.ReadSynthetic("[numa] core:4"); err != nil || m.Summary().PUs != 4 || m.Summary().NUMANodes != 1 {
		t.Errorf("%v", err)
	}
	if m, err = hwloc.ReadSynthetic("pu:4(indexes=6,4,2,0)"); err != nil || m.Online.String() != "0,2,4,6" {
		t.Errorf("%v", err)
	}
}
