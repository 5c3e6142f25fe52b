package hf

import "encoding/json"

// Count is a number that may be null (0), which differs from a missing one.
type Count struct {
	Value int
	given bool
}

// UnmarshalJSON reads a number, or null as 0.
func (n *Count) UnmarshalJSON(data []byte) error {
	n.given = true
	return json.Unmarshal(data, &n.Value)
}

// Or returns the number, or the default if the file has none.
func (n Count) Or(otherwise int) int {
	if n.given {
		return n.Value
	}
	return otherwise
}
