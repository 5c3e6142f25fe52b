package message

import (
	"slices"
	"strings"
)

// Or sorts names and returns them as "a, b or c"; "" for no names.
func Or(names []string) string {
	slices.Sort(names)
	last := len(names) - 1
	if last <= 0 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
