package api

// Class is the urgency of a request (Agent.xpu section 2): its sender states it, the scheduler acts
// on it.
type Class uint8

const (
	Reactive  Class = iota // somebody waits for it
	Proactive              // best effort, fills the slack
)

func (c Class) String() string {
	if c == Proactive {
		return "proactive"
	}
	return "reactive"
}
