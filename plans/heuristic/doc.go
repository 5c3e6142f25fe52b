// Package heuristic makes default plans, without tuning: ranks along the machine's tree, compute
// paths by what the CPU has, and for every shape a kernel and slices by default heuristic, from
// what a roofline.Machine says of caches. A tuner starts from such a plan, and searches start from
// its slices and order candidates by its estimate of cycles; engines that have no plan serve with
// it.
//
// Both estimates of cycles are in cycles.go, over one struct of figures.
package heuristic
