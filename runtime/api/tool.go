package api

// Tool is a function that an answer may call.
type Tool struct {
	Name        string
	Description string
	Parameters  string // JSON Schema of the arguments, unchanged from the request; empty: any object
	Strict      bool   // enforce Parameters completely, or refuse the request
}

// ToolCall is a call of a tool, in an answer or in the history of a chat.
type ToolCall struct {
	ID        string // links the result to the call
	Name      string // links the result to the call
	Arguments string // a JSON object
}

// ToolChoice states whether an answer calls tools. The zero value lets the model decide.
type ToolChoice struct {
	Mode  ToolMode
	Names []string // tools that may be called; empty: all
}

// ToolMode states whether an answer may or must call tools.
type ToolMode uint8

// Modes of tool use.
const (
	ToolsAuto     ToolMode = iota // text, calls or both
	ToolsNone                     // text only
	ToolsRequired                 // at least one call
)

// CallDelta is the part of a tool call that one token adds.
type CallDelta struct {
	Index     int    // index of the call in its answer
	ID, Name  string // set in the first delta of a call only
	Arguments string // to append to the arguments so far
}
