// Package topotree holds a machine as an immutable tree (Sandwich section 5): readers, transforms, digest, enumeration and sections.
package topotree
