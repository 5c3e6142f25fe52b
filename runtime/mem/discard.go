package mem

import "sandwich/runtime/background"

// discardBytes is the memory that a piece of Discard returns, in whole huge pages. The kernel takes
// up to about a millisecond for it.
const discardBytes = 8 << 20

// Discard returns the pages of buffers to the system, in pieces, and keeps their mappings. Free,
// which would do so in one long system call, has nothing left to return then. The content of the
// buffers is undefined afterwards. Nothing may use them meanwhile.
func Discard(pieces background.Run, list ...*Buffer) {
	at := 0
	pieces.Do(func() bool {
		for left := discardBytes; left > 0 && len(list) > 0; {
			n := min(left, list[0].Len()-at)
			if n > 0 {
				discard(list[0].data[at : at+n])
			}
			left -= n
			if at += n; at == list[0].Len() {
				list, at = list[1:], 0
			}
		}
		return len(list) > 0
	})
}
