// Package hwloc reads machines in the formats of hwloc: XML exports and synthetic strings.
package hwloc
