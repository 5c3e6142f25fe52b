// Package selection selects the plan for a model on a host: the requested bundle, else the newest
// stored one that the other flags permit, else the default plan, with measured rates if the
// arithmetic depends on them. Its errors name the flags of the commands.
package selection
