package exchange

import (
	"fmt"

	"sandwich/runtime/server/jsontext"
)

// WarningsHeader names the response header with warnings about parts of a request that were left
// out or changed. Its value is a JSON array in ASCII.
const WarningsHeader = "X-Sandwich-Warnings"

// maxWarningsHeader bounds the header value in bytes, because proxies refuse long headers.
const maxWarningsHeader = 2048

// warningsValue returns the header value. If the warnings exceed maxWarningsHeader, the last
// element counts those that are missing.
func warningsValue(list []string) string {
	const reserve = len(`,"999 more are in the body"]`)
	var value []byte
	for i, w := range list {
		quoted := appendASCII(nil, w)
		if len(value)+len(quoted)+reserve > maxWarningsHeader {
			value = appendASCII(jsontext.Comma(value), fmt.Sprintf("%d more are in the body", len(list)-i))
			break
		}
		value = append(jsontext.Comma(value), quoted...)
	}
	return "[" + string(value) + "]"
}

// appendASCII appends s as a JSON string of printable ASCII characters.
func appendASCII(b []byte, s string) []byte {
	for _, r := range string(jsontext.AppendString(nil, s)) {
		switch {
		case r < 0x80:
			b = append(b, byte(r))
		case r < 0x10000:
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			r -= 0x10000
			b = fmt.Appendf(b, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		}
	}
	return b
}

// AppendWarnings appends the field "warnings" to a JSON object that already has fields; an empty
// list appends nothing.
func AppendWarnings(b []byte, list []string) []byte {
	for i, w := range list {
		if b = append(b, ','); i == 0 {
			b = append(b, `"warnings":[`...)
		}
		b = jsontext.AppendString(b, w)
	}
	if len(list) > 0 {
		b = append(b, ']')
	}
	return b
}
