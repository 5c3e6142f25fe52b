// Package calibrate measures the machine that the program runs on and stores the figures in a
// profile.
//
// It uses kernels from the same generators as serving, on workers that are pinned to allowed PUs.
// Each figure has a median, a range and a number of samples. Samples of distinct figures are
// interleaved, so that a disturbance affects all of them.
package calibrate
