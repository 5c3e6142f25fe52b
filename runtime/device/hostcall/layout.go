package hostcall

// Layout of the shared memory. The child's machine code contains these offsets.
//
//	offset      content
//	0           header: base address, size, addresses of C functions
//	boxesAt     one mailbox of boxBytes per thread
//	scratchAt   one scratch area of scratchBytes per thread
const (
	headerBase  = 0  // uint64: address of the memory in both processes
	headerSize  = 8  // uint64: bytes to map
	headerTable = 64 // five uint64, in the order of the constants below

	boxesAt      = 4096
	boxBytes     = 4096
	maxThreads   = 8
	scratchAt    = boxesAt + maxThreads*boxBytes + 7*4096 // a multiple of 64 KiB
	scratchBytes = 4 << 20
	sharedBytes  = scratchAt + maxThreads*scratchBytes
)

// Entries of the table in the header. The child writes them before it serves the first request.
const (
	tableDlopen = iota
	tableDlsym
	tableDlerror
	tableCreateThread
	tableServe
	tableEntries
)

// Offsets in a mailbox. The words are uint32.
const (
	boxRequest      = 0  // number of the last request; the caller writes it
	boxDone         = 4  // number of the last finished request; the child writes it
	boxServerSleeps = 8  // 1 while the child may sleep on boxRequest
	boxClientSleeps = 12 // 1 while the caller may sleep on boxDone
	boxCount        = 16 // records of the request
	boxLeft         = 20 // records that were not completed
	boxRecords      = 64
)

// Offsets in a record of a mailbox.
const (
	recordFunction = 0  // uint64: address to call; 0 ends the thread
	recordStack    = 8  // uint32: arguments on the stack, an even number
	recordResult   = 16 // uint64
	recordCheck    = 24 // uint32: 1 stops the request if the low half of the result is not 0
	recordArgs     = 32 // 16 uint64
	recordBytes    = 160

	maxArgs  = 16
	maxCalls = (boxBytes - boxRecords) / recordBytes
)

// Descriptors of the child in addition to the standard streams.
const (
	sharedFD = 3 // the shared memory; closed once it is mapped
	socketFD = 4 // receives the files of regions and sends those of mappings
)

// exitUnmapped is the status with which the child ends if it cannot map the shared memory.
const exitUnmapped = 111
