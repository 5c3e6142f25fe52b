module sandwich/cmd/sandwich/enginetest

go 1.26.0
