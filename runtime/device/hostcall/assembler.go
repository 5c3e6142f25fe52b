package hostcall

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// assembler collects machine code, the fixups of its labels and a listing.
type assembler struct {
	code    []byte
	labels  map[string]int
	fixups  []fixup
	listing []line
}

// fixup patches the instruction at offset at with the distance to a label.
type fixup struct {
	at    int
	label string
	patch func(code []byte, at, target int) error
}

type line struct {
	at   int
	text string
}

// label names the current offset.
func (a *assembler) label(name string) {
	if a.labels == nil {
		a.labels = map[string]int{}
	}
	a.labels[name] = len(a.code)
	a.listing = append(a.listing, line{len(a.code), name + ":"})
}

// emit appends one instruction and its text.
func (a *assembler) emit(text string, code ...byte) {
	a.listing = append(a.listing, line{len(a.code), text})
	a.code = append(a.code, code...)
}

// refer adds a fixup of the instruction that was emitted last. at is relative to its end.
func (a *assembler) refer(label string, back int, patch func(code []byte, at, target int) error) {
	a.fixups = append(a.fixups, fixup{len(a.code) - back, label, patch})
}

// link resolves the labels.
func (a *assembler) link() error {
	for _, f := range a.fixups {
		target, ok := a.labels[f.label]
		if !ok {
			return fmt.Errorf("label %s is not defined", f.label)
		}
		if err := f.patch(a.code, f.at, target); err != nil {
			return fmt.Errorf("reference to %s at %#x: %w", f.label, f.at, err)
		}
	}
	return nil
}

// print returns the listing: offset, bytes and text of each instruction, offsets from base.
func (a *assembler) print(base int) string {
	var b strings.Builder
	for i, l := range a.listing {
		if strings.HasSuffix(l.text, ":") {
			fmt.Fprintf(&b, "%s\n", l.text)
			continue
		}
		end := len(a.code)
		if i+1 < len(a.listing) {
			end = a.listing[i+1].at
		}
		fmt.Fprintf(&b, "%5x  %-31x %s\n", base+l.at, a.code[l.at:end], l.text)
	}
	return b.String()
}

func le32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
