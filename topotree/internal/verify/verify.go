// Package verify says whether trees are checked after each transform.
package verify

import "os"

// Trees enables the checks. Tests set it before they make trees; it must not change while another
// goroutine uses a tree.
var Trees = os.Getenv("SANDWICH_VERIFY") == "1"
