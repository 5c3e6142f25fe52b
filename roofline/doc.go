// Package roofline implements the multi-ceiling roofline model: regimes, placement of operators and
// partition ratios.
//
// Several compute ceilings (vector cores, matrix units, devices, mixed) share one memory ceiling,
// after SMEPilot section 3.2. Efficiencies are fitted to anchors, after Agent.xpu appendix B.
// Machine returns the rates of sets of PUs. The package measures nothing: all figures come from a
// host profile.
package roofline
