package conntable

import "time"

// Tiers order connections by how readily they give way to a new one.
const (
	tierIdle     = iota // waits for a request
	tierStalled         // has been open for longer than patience and sends too slowly
	tierFresh           // has not been open for longer than patience
	tierUnread          // has sent a part of a header that is not read yet
	tierUnproven        // has sent a part of a body that is not read yet, or a body for less than bodyCredit
	tierKept            // never gives way
)

const (
	// patience is how long a connection may be without progress before it counts as stalled.
	patience = time.Second

	// MinBodyRate is the least rate of a request body in bytes per second. A slower body counts as
	// stalled, and it ends with status 408 when it is slower on average after the time that
	// Receive grants to every body. Mobile networks of the second generation are five
	// times as fast.
	MinBodyRate = 1 << 10

	// bodyCredit bounds the time for which bytes that arrived early count as progress.
	bodyCredit = 2 * time.Second

	// mostLooks bounds the connections of each state that are compared for a new one.
	mostLooks = 64
)

// tier returns how readily a connection gives way. The caller holds the table's lock.
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

// choose returns the connection that gives way: of the lowest tier, of the client with the most
// connections among these, and without progress for longest among these. It compares the mostLooks
// connections of each state that have been without progress for longest. Connections of
// tierUnread and tierUnproven give way only where their client has more than crowd connections. The
// result is nil where no connection gives way.
func (q *queues) choose(now time.Time, crowd int) (best *Conn) {
	least := tierKept
	precedes := func(c *Conn, tier int) bool {
		return best == nil || tier < least || tier == least && c.before(best)
	}
	for state := range q {
		looks := 0
		for e := q[state].Front(); e != nil && looks < mostLooks; e = e.Next() {
			looks++
			c := e.Value.(*Conn)
			tier := c.tier(now)
			if tier < tierUnread && state != stateLingers && precedes(c, tier) && c.hasUnread() {
				if tier = tierUnread; state == stateBody {
					tier = tierUnproven
				}
			}
			switch {
			case tier == tierKept, tier >= tierUnread && c.client.open <= crowd:
			case precedes(c, tier):
				best, least = c, tier
			}
		}
	}
	return best
}

// before reports whether c gives way before another connection of its tier.
func (c *Conn) before(other *Conn) bool {
	if c.client.open != other.client.open {
		return c.client.open > other.client.open
	}
	return c.since.Before(other.since)
}
