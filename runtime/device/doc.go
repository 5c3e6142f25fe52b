// Package device defines processors other than the cores, such as a GPU: what they compute exactly,
// their memory, and kernels of package devgen that run on them.
//
// A [Driver] finds and opens the devices of one API. Each driver is a package that calls [Register]
// from an init function; the rest of the program knows only this interface. [List] and [Open] find
// devices by an id such as "cuda:0".
//
// Work is recorded once ([Device.Record]) and submitted any number of times. Submissions run in
// order. A submission returns a [Ticket], which [Device.Reached] and [Device.Wait] take.
//
// A device is lost when its driver crashes, hangs or reports that it cannot continue. All later
// calls then return an error that wraps [ErrLost]; the process goes on.
package device
