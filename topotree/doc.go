// Package topotree describes a machine as an immutable tree (Sandwich section 5), with readers,
// transforms, digests, enumeration and sections.
//
// A reader (Linux sysfs, hwloc XML, hwloc synthetic text, the YAML of a profile) turns a
// description into a Machine: its objects, the PUs that may be used, and the fundamental Tree. A
// transform returns a new Tree. Enumerate yields all trees that transforms reach, one per
// equivalence class. Sections divides a tree into ranks.
package topotree
