// Package exporttest decodes the manifests of `plan export` strictly into the types of Kubernetes. It
// is a module of its own: make test-exports.
package exporttest
