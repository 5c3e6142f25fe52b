package exchange

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sandwich/runtime/api"
)

// TestWarningsHeaderBounds checks that the header is ASCII and bounded.
func TestWarningsHeaderBounds(t *testing.T) {
	w := new(api.Warnings)
	for i := range 100 {
		w.Add("%d %s\r\nX-Evil: 1\x00 \u0085 \u202e", i, strings.Repeat("é\"\\", 90))
	}
	value := warningsValue(w.List())
	unprintable := func(r rune) bool { return r < ' ' || r > '~' }
	if len(value) > 2048 || strings.IndexFunc(value, unprintable) >= 0 {
		t.Errorf("%d bytes: %q", len(value), value)
	}
	var list []string
	if err := json.Unmarshal([]byte(value), &list); err != nil || len(list) < 2 ||
		list[len(list)-1] != fmt.Sprintf("%d more are in the body", len(w.List())-len(list)+1) {
		t.Errorf("%v, %q", err, list)
	}
}
