// Package topotree describes a machine as an immutable tree (Sandwich section 5), with transforms
// and digests.
//
// A reader fills the objects and PUs of a Machine, and Build adds the fundamental Tree. The readers
// are the packages sysfs (Linux) and hwloc (XML and synthetic text); Description.Machine reads the
// YAML of a profile. Tree.Apply transforms a tree into another one. The package enumerate yields
// all trees that transforms reach, one per equivalence class, section divides a tree into ranks,
// cluster finds latent structure in measurements, and draw renders trees.
package topotree
