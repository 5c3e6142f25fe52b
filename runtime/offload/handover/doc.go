// Package handover divides the ops of a model between a device and the cores, and copies
// activations where one side continues after the other.
//
// The cores compute parts of a forward: the routing and the products of the experts of a layer. The
// device computes all other ops. Before a part the device copies the activations that it reads to
// host memory, and after it the results are copied to the device, so that each layer with experts
// has one hand-over in each direction.
package handover
