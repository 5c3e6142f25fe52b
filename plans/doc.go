// Package plans defines the plan: the types of plan.yaml, their text forms, and the checks that
// need no other file. FORMAT.md lists the fields.
//
// The package bundle stores a plan with the profile of its host and its evidence, migrate reads
// earlier versions, check compares a plan with a host and a model, and heuristic makes default
// plans. A plan holds specifications and no machine code: kernels are generated from their Spec
// when a plan is loaded, so loading a plan from an untrusted source executes none of its bytes.
package plans
