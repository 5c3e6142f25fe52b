package llm

import (
	"testing"

	"sandwich/cmd/sandwich/internal/showtest"
	"sandwich/cmd/sandwich/internal/table"
)

// TestTablesFit checks that the tables of bench llm fit a terminal of 80 columns.
func TestTablesFit(t *testing.T) {
	showtest.CheckFit(t, map[string]table.Table{
		"bench llm":        {Header: speedReport.Columns, Numbers: speedReport.Numbers},
		"bench llm switch": {Header: switchReport.Columns, Numbers: switchReport.Numbers},
		"bench llm server": {Header: clientsReport.Columns, Numbers: clientsReport.Numbers},
	})
}
