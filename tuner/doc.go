// Package tuner is the pipeline from host profile, model and trace to a plan bundle.
package tuner
