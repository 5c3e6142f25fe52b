package api

import (
	"fmt"
	"strings"
	"testing"
)

func TestWarnings(t *testing.T) {
	var none *Warnings
	none.Add("discarded")
	if got := none.List(); got != nil {
		t.Errorf("a nil collector lists %q", got)
	}
	w := new(Warnings)
	w.Add("messages[%d]: left out", 1)
	w.Add("messages[%d]: left out", 1)
	w.Add("a\x1b[31mb %s", strings.Repeat("é", maxWarningBytes))
	got := w.List()
	if len(got) != 2 || got[0] != "messages[1]: left out" {
		t.Fatalf("warnings are %q, want two, the first once", got)
	}
	if strings.Contains(got[1], "\x1b") || len(got[1]) > maxWarningBytes+16 {
		t.Errorf("a long hostile warning is listed as %q", got[1])
	}
	for i := range 2 * maxWarnings {
		w.Add("warning %d", i)
	}
	got = w.List()
	if want := fmt.Sprintf("%d more warnings are not listed", maxWarnings+2); got[len(got)-1] != want {
		t.Errorf("the last of %d warnings is %q, want %q", len(got), got[len(got)-1], want)
	}
}
