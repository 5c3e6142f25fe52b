// Package oci keeps packed plans as OCI artifacts: in an image layout, which is a folder, or in a
// registry. A plan is one manifest of a type of its own with one layer, the packed plan; nothing in
// it depends on when and by whom it was pushed, so that equal plans have equal digests anywhere.
//
// Source: OCI image specification 1.1 (manifest.md, image-layout.md) and OCI distribution
// specification 1.1. Whatever comes back is a stranger's: sizes are bounded before they are read,
// every byte is under a digest, and no other host is spoken to than the one that was named.
package oci
