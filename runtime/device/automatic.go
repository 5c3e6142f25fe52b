package device

import (
	"fmt"
	"strings"
)

// NotAutomatic returns why a listed device is not used unless its ID is given, or "".
func (i Info) NotAutomatic() string {
	switch {
	case i.Software:
		return "its driver computes on the cores"
	case i.Lacks != "":
		return "it lacks " + i.Lacks
	}
	return ""
}

// InexactText returns why a device with inexact classes of arithmetic is not used, or "".
func InexactText(classes []string) string {
	if len(classes) == 0 {
		return ""
	}
	return fmt.Sprintf("it is not exact (%s); --device-rounding permits it", strings.Join(classes, ", "))
}
