// Package plans owns the plan bundle: what it says, how it is read, written, checked, verified and
// compared.
//
// A bundle is a folder NAME.plan with plan.yaml (what to do), host.yaml (the profile it was made
// on), evidence.yaml (why) and MANIFEST.yaml (hashes). It holds specifications and never machine
// code: kernels are built from their Spec at load, so that a bundle may come from a stranger.
package plans
