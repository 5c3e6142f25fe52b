// Package profiles is a TopoTree plus measured ceilings, per host; it also carries the built-in
// machines of the papers.
package profiles
