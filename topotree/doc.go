// Package topotree holds a machine as an immutable tree (Sandwich section 5): readers, transforms,
// digest, enumeration and sections.
//
// A reader (Linux sysfs, hwloc XML, hwloc synthetic text, the YAML of a profile) turns a
// description into a Machine: what exists, what may be used, and the fundamental Tree. A transform
// returns a new Tree. Enumerate walks every tree that the transforms reach, each equivalence class
// once. Sections cuts a tree into ranks.
package topotree
