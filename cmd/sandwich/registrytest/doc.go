// Package registrytest holds `sandwich plan push` and `plan pull` against a real registry, that of
// the distribution project, on a loopback address. It is a module of its own: make test-registry.
package registrytest
