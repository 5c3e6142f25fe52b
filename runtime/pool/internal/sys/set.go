package sys

import (
	"errors"
	"strconv"
	"strings"
)

// ErrNoAffinity is wrapped by errors of Pin on systems that bind no threads, such as a sandbox.
var ErrNoAffinity = errors.New("the system does not bind threads to PUs")

// FormatSet formats an ascending list of PUs as the kernel does: 0-3,8.
func FormatSet(pus []int) string {
	var b strings.Builder
	for i := 0; i < len(pus); {
		j := i
		for j+1 < len(pus) && pus[j+1] == pus[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(pus[i]))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(pus[j]))
		}
		i = j + 1
	}
	return b.String()
}
