package api

// Tool is a function that an answer may call.
type Tool struct {
	Name        string
	Description string
	Parameters  string // JSON Schema of the arguments, as it was given; empty: any object
	Strict      bool   // arguments follow Parameters in full, or the request is refused
}

// ToolCall is one call of a tool, in an answer or in the history of a chat.
type ToolCall struct {
	ID        string // links the result to the call
	Name      string
	Arguments string // a JSON object
}

// ToolChoice says whether an answer calls tools. The zero value leaves it to the model.
type ToolChoice struct {
	Mode  ToolMode
	Names []string // of the tools that may be called; none: any
}

// ToolMode is how far an answer is free to call tools.
type ToolMode uint8

// What a client may choose.
const (
	ToolsAuto     ToolMode = iota // text, calls, or both
	ToolsNone                     // text alone
	ToolsRequired                 // a call
)

// CallDelta is what a token adds to a call of an answer.
type CallDelta struct {
	Index     int    // of the call in its answer
	ID, Name  string // with the first one of a call alone
	Arguments string // to append
}
