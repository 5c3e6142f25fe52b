package grammar

// Again begins another answer, with the states and masks that earlier ones made. It answers false
// where those may depend on what the earlier ones were: where masks may have been cut short, for
// the answer took more work than one may. Such a Matcher is of no further use.
func (m *Matcher) Again() bool {
	if m.m.cut || m.m.work > answerWork || m.m.bytes > stateBytes {
		return false
	}
	m.m.work, m.most = 0, answerWork
	m.at = m.m.start()
	return true
}
