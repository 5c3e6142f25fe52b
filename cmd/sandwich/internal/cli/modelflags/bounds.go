package modelflags

// MaxParallel limits the rows of a decode batch, since each has a separate row of logits.
const MaxParallel = 512

// MaxContext limits the context that flags may request, in tokens; memory is checked separately.
const MaxContext = 1 << 24

// MaxTexts limits the number of texts of one run.
const MaxTexts = 1 << 20

// LogitRows is the number of positions of a prompt per forward when all their logits are requested.
// It bounds the memory for logits.
const LogitRows = 64
