package show

import (
	"bytes"
	"testing"
)

// TestPrintable writes text in parts of every length: control characters are shown in hexadecimal,
// other text is unchanged.
func TestPrintable(t *testing.T) {
	const text = "a\x1b[2Jb\u009bc\u202ed\u2066e\u200ff\u061cg\x7fh\r\n\tä日本\ufffd\xffi\x9b"
	const want = `a\u001b[2Jb\u009bc\u202ed\u2066e\u200ff\u061cg\u007fh\u000d` + "\n\tä日本\ufffd" + `\xffi\x9b`
	for size := 1; size <= len(text); size++ {
		var out bytes.Buffer
		w := NewWriter(&out)
		for rest := []byte(text); len(rest) > 0; {
			n, err := w.Write(rest[:min(size, len(rest))])
			if err != nil || n == 0 {
				t.Fatal(n, err)
			}
			rest = rest[n:]
		}
		w.Flush()
		if out.String() != want {
			t.Errorf("in pieces of %d: %q, want %q", size, out.String(), want)
		}
	}
	if got := Printable("two\nlines"); got != `two\u000alines` {
		t.Errorf("a line break in a name became %q", got)
	}
}
