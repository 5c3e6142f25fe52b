// Package model describes architectures as a flat list of ops with shapes; it executes nothing.
package model
