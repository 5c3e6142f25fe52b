// Package kubetest runs the manifests that `plan export --to kubernetes` writes on a Kubernetes
// cluster of two nodes on this machine: make test-kubernetes. It is a module of its own, since
// Kubernetes has many dependencies.
package kubetest
