package speculate

// estimate is a running estimate of the probability that a drafted token is accepted if those
// before it were.
type estimate struct {
	hits, tries float64 // of recent tokens; older ones count less
}

// Memory of the estimates, in drafted tokens.
const (
	classMemory = 64 // of a class
	textMemory  = 24 // of one sequence

	// The estimate of a class begins as if firstTries tokens had been drafted and half of them
	// accepted. The estimate of a sequence begins with that of the class, weighted as textTries
	// tokens.
	firstTries = 2
	textTries  = 8
)

// add counts tokens of a draft: tried until the first that was rejected, accepted before it.
func (e *estimate) add(tried, accepted int, memory float64) {
	for i := range tried {
		keep := 1 - 1/memory
		e.tries = e.tries*keep + 1
		e.hits *= keep
		if i < accepted {
			e.hits++
		}
	}
}

// chance returns the estimate, with a prior that counts as so many tokens.
func (e *estimate) chance(prior, weight float64) float64 {
	return (e.hits + weight*prior) / (e.tries + weight)
}

// Acceptance estimates the acceptance of the drafts of one sequence. The zero value knows nothing.
type Acceptance struct{ own [Classes]estimate }
