// Package candidates derives service configurations from a TopoTree (Sandwich section 5.3): the PUs
// of prefill and decode, their ranks, and the memory nodes of the ranks.
//
// Enumerate walks the enumerated trees and their sections. A Predictor estimates the duration of
// forwards under a configuration from a roofline.Machine and the work of a model's ops.
// Configurations with equal predictions become one candidate with several names. Complete adds the
// figures that a prediction needs and a profile lacks, and reports what it assumes. The package
// measures nothing.
package candidates
