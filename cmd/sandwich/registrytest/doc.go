// Package registrytest runs `sandwich plan push`, `plan pull`, `plan index`, `serve --plans`, `cache
// push` and `cache pull` against the registry of the distribution project on a loopback address. It
// is a module of its own: make test-registry.
package registrytest
