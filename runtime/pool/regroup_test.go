package pool

// regroup divides the workers between two runs.
func (p *Pool) regroup(groups [][]int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.setGroups(groups)
}

// regroup does so while the leader leads.
func (l *Leader) regroup(groups [][]int) error { return l.p.setGroups(groups) }
