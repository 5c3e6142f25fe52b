// Package calibrate measures a live machine into a profile.
package calibrate
