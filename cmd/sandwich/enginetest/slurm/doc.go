// Package slurm runs the jobs that `plan export --to slurm` writes on a Slurm cluster of three
// nodes on this machine (make test-slurm), and on one of guests with different topologies
// (make test-slurm-guests).
package slurm
