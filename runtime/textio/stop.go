package textio

import "strings"

// stopper finds stop strings in text that arrives in pieces. It holds back the end of the text
// while that may be the beginning of a stop string, so that no part of a stop string is sent.
type stopper struct {
	stops   []string
	longest int
	held    string
	found   string // stop string that ended the answer
}

func newStopper(stops []string) *stopper {
	s := &stopper{}
	for _, stop := range stops {
		if stop != "" {
			s.stops = append(s.stops, stop)
			s.longest = max(s.longest, len(stop))
		}
	}
	return s
}

// push adds text and returns the text that can be sent, and whether a stop string was found; the
// text to send then ends before it. If there are several, the one that is complete first wins, so
// that the answer does not depend on where tokens begin and end.
func (s *stopper) push(text string) (send string, stopped bool) {
	if len(s.stops) == 0 {
		return text, false
	}
	s.held += text
	from, to := -1, len(s.held)+1
	for _, stop := range s.stops {
		i := strings.Index(s.held, stop)
		if end := i + len(stop); i >= 0 && (end < to || end == to && i < from) {
			from, to, s.found = i, end, stop
		}
	}
	if from >= 0 {
		send, s.held = s.held[:from], ""
		return send, true
	}
	keep := s.tail()
	send, s.held = s.held[:len(s.held)-keep], s.held[len(s.held)-keep:]
	return send, false
}

// tail returns the length of the longest suffix of the held text that is a prefix of a stop string.
func (s *stopper) tail() int {
	longest := 0
	for _, stop := range s.stops {
		for n := min(len(stop)-1, len(s.held)); n > longest; n-- {
			if strings.HasSuffix(s.held, stop[:n]) {
				longest = n
				break
			}
		}
	}
	return longest
}

// flush returns the text that is held back, when the answer ends without a stop string.
func (s *stopper) flush() string {
	send := s.held
	s.held = ""
	return send
}
