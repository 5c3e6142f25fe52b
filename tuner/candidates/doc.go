// Package candidates turns a TopoTree into service configurations (Sandwich section 5.3): which PUs
// work in prefill and which in decode, in how many ranks, on whose memory.
//
// Enumerate walks the enumerated trees and their sections. A Predictor says how long forwards take
// under a configuration, from a roofline.Machine and the work of a model's ops; configurations that
// it cannot tell apart are one candidate with several names. Complete names every figure that a
// profile lacks and that a prediction needs, and what is assumed instead. Nothing here measures.
package candidates
