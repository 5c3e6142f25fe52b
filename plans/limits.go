package plans

// Version is the schema version of the bundles that this build writes, and of each of their files.
// The package migrate reads older versions.
const Version = 3

// Limits of a plan. They are far above any machine and far below what would exhaust one.
const (
	maxTokens  = 1 << 20 // seq_max, batch_max, chunk
	maxSlice   = 1 << 20 // bm, bn, bk
	maxWays    = 1 << 14
	maxTables  = 256
	maxRules   = 4096
	maxRanks   = 1024
	maxNode    = 1 << 16    // of NUMA
	maxPieces  = 1 << 14    // weights times ranks
	maxWidened = 16 << 20   // float32 values of a widened slice: 64 MiB per thread
	maxPacked  = maxWidened // activations of a packed slice
)

// Limits of dimensions that this program can address; larger numbers are errors or attacks.
const (
	maxDim    = 1 << 24
	maxLayers = 1 << 12
	maxCount  = 1 << 20
	maxValues = 1 << 44 // of all weights of a model: sums of their bytes fit in int64
)
