package message

import (
	"slices"
	"strings"
)

// Or returns the sorted names as "a, b or c".
func Or(names []string) string {
	slices.Sort(names)
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
