// Package oci stores packed plans and prefixes of prompts as OCI artifacts in an image layout,
// which is a folder, or in a registry. A plan is a manifest with a type of its own and one layer,
// the packed plan; a prefix has a layer for each block. Their content does not depend on the time
// or the author of the push, so that equal plans have equal digests.
//
// Source: OCI image specification 1.1 (manifest.md, image-layout.md) and OCI distribution
// specification 1.1. Received data is untrusted: sizes are limited before data is read, all bytes
// are checked against digests, and only the hosts that the user named are contacted.
package oci
