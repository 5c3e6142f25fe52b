package pool

import (
	"strconv"
	"strings"
)

// formatSet writes an ascending list of PUs the way the kernel does: 0-3,8.
func formatSet(pus []int) string {
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
