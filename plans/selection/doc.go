// Package selection finds the plan that a model runs under on a host: the bundle that was asked
// for, else the newest stored one that the other wishes allow, else the heuristic, by this
// machine's rates where the arithmetic of weights depends on them. Its errors name the flags of the
// verbs.
package selection
