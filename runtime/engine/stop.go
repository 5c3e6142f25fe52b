package engine

import "strings"

// stopper holds text back while it could still become a stop string, so that no part of one is ever sent.
type stopper struct {
	stops   []string
	longest int
	held    string
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

// push takes new text and returns what can be sent, and whether a stop string was found: the text then ends before it.
func (s *stopper) push(text string) (send string, stopped bool) {
	if len(s.stops) == 0 {
		return text, false
	}
	s.held += text
	first := -1
	for _, stop := range s.stops {
		if i := strings.Index(s.held, stop); i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	if first >= 0 {
		send, s.held = s.held[:first], ""
		return send, true
	}
	keep := s.tail()
	send, s.held = s.held[:len(s.held)-keep], s.held[len(s.held)-keep:]
	return send, false
}

// tail is the length of the longest end of the held text that begins a stop string.
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

// flush returns what is still held: the generation ended otherwise.
func (s *stopper) flush() string {
	send := s.held
	s.held = ""
	return send
}
