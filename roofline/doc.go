// Package roofline is pure arithmetic: the multi-ceiling roofline, its regimes, placement and
// partition ratio.
//
// One memory ceiling is shared by several compute ceilings (vector cores, matrix units, mixed),
// after SMEPilot section 3.2; effective ceilings come from two anchors, after Agent.xpu appendix B.
// Machine answers what a set of PUs can do. Nothing here measures: figures come from a host
// profile, and every function is a formula.
package roofline
