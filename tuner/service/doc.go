// Package service turns sections of a TopoTree into service configurations.
package service
