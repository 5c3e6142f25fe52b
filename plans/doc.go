// Package plans defines the plan bundle: its format, and how bundles are read, written, checked,
// verified and compared.
//
// A bundle is a folder NAME.plan with plan.yaml (the plan), host.yaml (the profile of the host it
// was made on), evidence.yaml (the measurements behind it) and MANIFEST.yaml (hashes). It holds
// specifications and no machine code: kernels are generated from their Spec when a plan is loaded,
// so loading a bundle from an untrusted source executes none of its bytes.
package plans
