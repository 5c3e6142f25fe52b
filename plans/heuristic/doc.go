// Package heuristic makes default plans without tuning: ranks along the topology tree, compute
// paths by the features of the CPU, and for every shape a kernel and slices from the cache sizes
// and rates of a roofline.Machine. Engines without a tuned plan run a default plan. A tuner starts
// from it; searches of schedules start from its slices and order candidates by its cycle estimates.
package heuristic
