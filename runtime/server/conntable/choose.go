package conntable

import "time"

// Tiers order connections by how early they are displaced by a new one.
const (
	tierIdle     = iota // waits for a request
	tierStalled         // has been open for longer than patience and sends too slowly
	tierFresh           // has not been open for longer than patience, or a header has begun that is not read yet
	tierUnread          // has sent the end of a header that is not read yet
	tierUnproven        // has sent a part of a body that is not read yet, or a body for less than bodyCredit
	tierKept            // never displaced
)

const (
	// patience is the time without progress after which a connection counts as stalled.
	patience = time.Second

	// MinBodyRate is the minimum rate of a request body in bytes per second. A slower body counts
	// as stalled; it ends with status 408 if its average rate is lower after the time that Receive
	// grants to every body.
	MinBodyRate = 1 << 10

	// bodyCredit bounds the time for which bytes that arrived early count as progress.
	bodyCredit = 2 * time.Second

	// maxLooks bounds the connections of each state that are compared to find one to displace.
	maxLooks = 64
)

// tier returns the tier of a connection. The caller holds the table's lock.
func (c *Conn) tier(now time.Time) int {
	age := now.Sub(c.began)
	switch {
	case c.state == stateBusy:
		return tierKept
	case c.state == stateIdle && (c.used || age >= patience):
		return tierIdle
	case c.state == stateBody && c.covered.After(now):
		if age < bodyCredit {
			return tierUnproven
		}
		return tierKept
	case age >= patience:
		return tierStalled
	}
	return tierFresh
}

// choose returns the connection to displace, or nil if there is none: the lowest tier first, within
// it the client with the most connections, and of these the connection that has been without
// progress for longest. It compares the maxLooks connections of each state that have been without
// progress for longest. Connections of tierUnread and tierUnproven are displaced only if their
// client has more than crowd connections.
func (q *queues) choose(now time.Time, crowd int) (best *Conn) {
	smallest := tierKept
	precedes := func(c *Conn, tier int) bool {
		return best == nil || tier < smallest || tier == smallest && c.before(best)
	}
	for state := range q {
		looks := 0
		for e := q[state].Front(); e != nil && looks < maxLooks; e = e.Next() {
			looks++
			c := e.Value.(*Conn)
			tier := c.tier(now)
			if tier < tierUnread && state != stateLingers && precedes(c, tier) {
				tier = c.tierUnread(tier)
			}
			switch {
			case tier == tierKept, tier >= tierUnread && c.client.open <= crowd:
			case precedes(c, tier):
				best, smallest = c, tier
			}
		}
	}
	return best
}

// tierUnread returns the tier of a connection whose tier without its unread bytes is given. A
// client whose header is complete is not at fault if the server has not read it.
func (c *Conn) tierUnread(tier int) int {
	some, header := c.unread()
	if c.encrypted {
		header = some && !c.handshaking.Load() // the end of a header cannot be seen
	}
	switch {
	case some && c.state == stateBody:
		return tierUnproven
	case header:
		return tierUnread
	case some && c.state == stateIdle:
		return tierFresh
	}
	return tier
}

// before reports whether c is displaced before another connection of its tier.
func (c *Conn) before(other *Conn) bool {
	if c.client.open != other.client.open {
		return c.client.open > other.client.open
	}
	return c.since.Before(other.since)
}
