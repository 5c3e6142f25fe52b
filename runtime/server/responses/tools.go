package responses

import (
	"encoding/json"
	"fmt"

	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/fields"
	"sandwich/runtime/server/jsontext"
	"sandwich/runtime/server/request"
	"sandwich/runtime/toolcall"
)

// customTool is the schema of a tool that accepts plain text.
const customTool = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],` +
	`"additionalProperties":false}`

// responseTool is a tool of /v1/responses, or a namespace of tools.
type responseTool struct {
	Type *string `json:"type"`
	request.Function
	Tools json.RawMessage `json:"tools"`
}

// namespaced is a tool in a namespace.
type namespaced struct{ namespace, name string }

// tools reads functions, custom tools and namespaces. Tools that OpenAI runs itself are left out
// with a warning.
func (a *createRequest) tools() *apierr.Error {
	a.Custom, a.namespaced = map[string]bool{}, map[string]namespaced{}
	if jsontext.IsEmpty(a.body.Tools) {
		return request.CheckTools(&a.Request)
	}
	e := fields.Each(a.body.Tools, "tools", toolcall.MaxTools, func(i int, item json.RawMessage) *apierr.Error {
		return a.tool(item, fmt.Sprintf("tools[%d]", i), "")
	})
	if e == nil {
		e = request.CheckTools(&a.Request)
	}
	return e
}

// tool adds one tool, or the tools of a namespace.
func (a *createRequest) tool(item json.RawMessage, at, namespace string) *apierr.Error {
	var t responseTool
	if e := fields.Decode(item, &t, at); e != nil {
		return e
	}
	tool := t.Function.Tool()
	switch kind := fields.String(t.Type); {
	case kind == "namespace" && namespace == "":
		if tool.Name == "" {
			return apierr.Invalid(at+".name", "is missing; send the name of the namespace")
		}
		return fields.Each(jsontext.OrElse(t.Tools, "[]"), at+".tools", toolcall.MaxTools, func(i int,
			item json.RawMessage) *apierr.Error {
			return a.tool(item, fmt.Sprintf("%s.tools[%d]", at, i), tool.Name)
		})
	case kind == "function":
	case kind == "custom":
		tool.Parameters = customTool
		a.Custom[request.QualifiedName(namespace, tool.Name)] = true
	default:
		a.Warnings.Add("%s: the type %q is not supported; the tool was left out", at, jsontext.Clip(kind))
		return nil
	}
	if len(a.Tools) == toolcall.MaxTools {
		return apierr.Invalid("tools", "has more than the %d elements accepted", toolcall.MaxTools)
	}
	if called := request.QualifiedName(namespace, tool.Name); namespace != "" {
		a.namespaced[called] = namespaced{namespace, tool.Name}
		tool.Name = called
	}
	a.Tools = append(a.Tools, tool)
	return nil
}

// setName sets the name and namespace of a called tool in an item, as the client sent them.
func (a *createRequest) setName(called string, item object) {
	item["name"] = called
	if s, ok := a.namespaced[called]; ok {
		item["name"], item["namespace"] = s.name, s.namespace
	}
}
