package engine

// overflowed is a job whose row of the last forward is not finite.
type overflowed struct {
	job *job
	row int // of the batch
}

// fail ends jobs whose numbers overflowed, each with the place of the overflow. It keeps the lock
// for some milliseconds, since the sequences hold their blocks only until the next step of the
// scheduler.
func (c *lane) fail(list []overflowed) {
	for _, u := range list {
		for i := range c.batch.Spans {
			s := &c.batch.Spans[i]
			if u.row < s.Row || u.row >= s.Row+s.Rows {
				continue
			}
			token := func(pos int) (int32, bool) {
				if at := s.Row + pos - s.Pos; at >= s.Row && at < s.Row+s.Rows {
					return c.batch.Tokens[at], true
				}
				if pos < len(u.job.req.Prompt) {
					return u.job.req.Prompt[pos], true
				}
				return 0, false
			}
			err := c.runner.Overflow(c.leader, c.withCores, s.Tables, s.Pos+u.row-s.Row, token)
			u.job.out.close("", err)
		}
	}
}
