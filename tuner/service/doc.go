// Package service turns a TopoTree into service configurations (Sandwich section 5.3): which PUs
// work in prefill, and which in decode.
//
// With one rank the partition of the model is the same whatever the PUs, so that both phases choose
// their active PUs on their own, out of the same sets.
package service
