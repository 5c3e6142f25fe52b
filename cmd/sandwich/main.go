// Command sandwich probes a machine, tunes a plan for a model on it, and serves the model with that plan.
package main

func main() {}
