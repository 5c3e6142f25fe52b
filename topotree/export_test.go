package topotree

// What the tests outside the package, which may draw, use of those inside it.
var (
	MustSynthetic = mustSynthetic
	MustApply     = mustApply
	Latencies     = latencies
	Indexes       = indexes
)

// Kunpeng920 is kunpeng920.
const Kunpeng920 = kunpeng920

// WithoutVerify switches the checks of every transform off, and returns what switches them on
// again.
func WithoutVerify() (again func()) {
	verify = false
	return func() { verify = true }
}
