// Package slurm runs the jobs that `plan export --to slurm` writes on a Slurm cluster of three nodes
// on this machine: make test-slurm.
package slurm
