module sandwich/runtime/server/clients

go 1.26.0

require (
	github.com/openai/openai-go v1.12.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.1
)

require (
	github.com/tidwall/gjson v1.14.4 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	golang.org/x/text v0.21.0 // indirect
)
