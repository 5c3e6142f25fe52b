// Package chart draws what tuner/measure found as SVG.
package chart
