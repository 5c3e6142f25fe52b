package microkernel

import "flag"

var long = flag.Bool("long", false, "check every spec of every space rather than a sample")
