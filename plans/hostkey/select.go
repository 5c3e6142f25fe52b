package hostkey

import (
	"cmp"
	"slices"
	"time"
)

// Entry is a plan in a list of plans.
type Entry struct {
	Name    string // by which the list finds the plan
	Key     Key
	Created string // date of the measurements, as in the evidence
	Tuned   bool
}

// Select returns the plans that fit the key of a process, tuned ones first, then the newest by
// measurement, and of equal ones the last by name. If none fits, nearest is the plan whose first
// difference comes latest in the order of selection, nil for an empty list.
func Select(list []Entry, here Key) (fits []Entry, nearest *Entry) {
	best := -1
	for i := range list {
		switch rank := rankOf(list[i].Key, here); {
		case rank == len(fields):
			fits = append(fits, list[i])
		case rank > best || rank == best && better(list[i], *nearest) < 0:
			best, nearest = rank, &list[i]
		}
	}
	slices.SortFunc(fits, better)
	if len(fits) > 0 {
		nearest = nil
	}
	return fits, nearest
}

// better orders plans that fit equally well.
func better(a, b Entry) int {
	if a.Tuned != b.Tuned {
		if a.Tuned {
			return -1
		}
		return 1
	}
	return cmp.Or(dateOf(b).Compare(dateOf(a)), cmp.Compare(b.Name, a.Name))
}

// dateOf returns the date of the measurements, the zero time if it is invalid.
func dateOf(e Entry) time.Time {
	t, _ := time.Parse(time.RFC3339, e.Created)
	return t
}
