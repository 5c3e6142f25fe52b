// Package installed tells whether a host may have a device of an API by its files: the driver's
// library, the descriptions of Vulkan drivers, and the device files of GPUs. It loads no library
// and starts no process.
package installed
