// Package profiles describes hosts: a topology with the ceilings that were measured on it. It also
// has the built-in machines of the papers.
package profiles
