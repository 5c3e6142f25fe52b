package mem

import (
	"strconv"
	"strings"
	"testing"
)

func TestSurvey(t *testing.T) {
	a, b := alloc(t, 1000*pageSize, Options{Node: AnyNode, Touch: true}), alloc(t, 64*pageSize, Options{Node: 0})
	all, err := SurveyOf(0, a, nil, b)
	if err != nil {
		t.Fatal(err)
	}
	if all.Bytes() != int64(a.Len()+b.Len()) || all.Remote() != 0 || all.Moved(all) != 0 {
		t.Errorf("%d bytes, remote %v, moved %d", all.Bytes(), all.Remote(), all.Moved(all))
	}
	if all.Known {
		on := int64(0)
		for _, n := range all.On() {
			on += n
		}
		if on != int64(a.Len()) { // b is not touched
			t.Errorf("%d bytes are present, want %d", on, a.Len())
		}
	}
	few, err := SurveyOf(10, a, b)
	if err != nil {
		t.Fatal(err)
	}
	if len(few.list[0].nodes) != 10 || few.Bytes() != all.Bytes() {
		t.Errorf("%d pages were asked about", len(few.list[0].nodes))
	}
	// What another machine would have answered.
	few.Known = true
	few.list[0].nodes = []int32{0, 0, 1, 1, 1, -1, 0, 0, 0, 0}
	few.list[1].nodes = []int32{0, 1, 1, 0, 0, 0, 0, 0, 0, 0}
	page, small := few.list[0].perPage(), few.list[1].perPage()
	if on := few.On(); on[0] != 6*page+8*small || on[1] != 3*page+2*small {
		t.Errorf("on nodes: %v", on)
	}
	if got, want := few.Remote(), float64(2*small)/float64(9*page+10*small); got != want {
		t.Errorf("remote %v, want %v: a was asked for on no node, b on node 0", got, want)
	}
	later, _ := SurveyOf(10, a, b)
	later.list[0].nodes = []int32{0, 0, 0, 1, 1, 1, -1, 0, 0, 0}
	later.list[1].nodes = few.list[1].nodes
	if got := later.Moved(few); got != page {
		t.Errorf("moved %d, want %d", got, page)
	}
	later.list[1].at += 64
	if got := later.Moved(few); got != page+int64(b.Len()) {
		t.Errorf("moved %d with a buffer at another address", got)
	}
	if got := later.Moved(Survey{}); got != later.Bytes() {
		t.Errorf("moved %d against nothing", got)
	}
}

func TestHugeBytes(t *testing.T) {
	b := alloc(t, 4<<20, Options{Node: AnyNode, Huge: true, Touch: true})
	n, err := HugeBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	if n < -1 || n > int64(b.Len()) {
		t.Errorf("%d bytes of %d on huge pages", n, b.Len())
	}
	at := uint64(uintptr(b.Pointer()))
	hex := func(v uint64) string { return strconv.FormatUint(v, 16) }
	smaps := hex(at-1<<20) + "-" + hex(at+1<<20) + " rw-p 00000000 00:00 0\nSize: 2048 kB\nAnonHugePages:      " +
		"2048 kB\n" +
		hex(at+1<<20) + "-" + hex(at+4<<20) + " rw-p 00000000 00:00 0\nAnonHugePages:         0 kB\n" +
		hex(at+64<<20) + "-" + hex(at+68<<20) + " rw-p 00000000 00:00 0\nAnonHugePages:      4096 kB\n"
	if n, err := hugeIn(strings.NewReader(smaps), []*Buffer{nil, b}); err != nil || n != 1<<20 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := hugeIn(strings.NewReader(hex(at)+"-"+hex(at+1)+" x\nAnonHugePages: many kB\n"),
		[]*Buffer{b}); err == nil {
		t.Error("a word instead of a number passed")
	}
}
