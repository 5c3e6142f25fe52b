// Package chart draws the results of tuner/measure as SVG.
package chart
