package bench

import (
	"testing"

	"sandwich/cmd/sandwich/internal/showtest"
	"sandwich/cmd/sandwich/internal/table"
)

// TestTablesFit checks that the tables of the benchmarks fit a terminal of 80 columns.
func TestTablesFit(t *testing.T) {
	showtest.CheckFit(t, map[string]table.Table{
		"bench gemm":       {Header: gemmReport(false).Columns, Numbers: gemmReport(false).Numbers},
		"bench gemm peers": {Header: gemmReport(true).Columns, Numbers: gemmReport(true).Numbers},
		"bench attention":  {Header: attentionReport.Columns, Numbers: attentionReport.Numbers},
		"bench allreduce":  {Header: reduceReport.Columns, Numbers: reduceReport.Numbers},
		"bench search":     {Header: searchReport.Columns, Numbers: searchReport.Numbers},
	})
}
