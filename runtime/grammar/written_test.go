package grammar

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// writtenSchemas resemble schemas of configuration files and of agents' tools; all were written for
// this test.
var writtenSchemas = map[string]string{
	"manifest of a package": `{"$id":"https://example.com/package.json","type":"object","required":["name","version"],
		"definitions":{"person":{"description":"A person","type":["object","string"],"required":["name"],"properties":{
			"name":{"type":"string"},"email":{"type":"string","format":"email"}}},
			"deps":{"type":"object","additionalProperties":{"type":"string"}}},
		"properties":{"name":{"type":"string","pattern":"^(?:@[a-z0-9-]+/)?(?![._])[a-z0-9-._~]{1,40}$"},
			"version":{"type":"string","pattern":"^(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)(?:-[0-9a-z.-]+)?$"},
			"author":{"$ref":"#/definitions/person"},"keywords":{"type":"array","items":{"type":"string"},"uniqueItems":true},
			"dependencies":{"$ref":"#/definitions/deps"},"private":{"enum":[true,false,"false","true"]},
			"bin":{"anyOf":[{"type":"string"},{"$ref":"package.json#/definitions/deps"}]}},
		"patternProperties":{"^_":{"description":"private","tsType":"any"}}}`,
	"workflow": `{"type":"object","required":["on","jobs"],"additionalProperties":false,"$defs":{
		"name":{"type":"string","pattern":"^[_a-zA-Z][a-zA-Z0-9_-]*$","maxLength":12},
		"expr":{"type":"string","pattern":"^\\$\\{\\{(.|[\\r\\n])*\\}\\}$"},
		"env":{"oneOf":[{"type":"object","additionalProperties":{"anyOf":[{"type":"string"},{"type":"number"}]}},
			{"$ref":"#/$defs/expr"}]},
		"step":{"type":"object","properties":{"id":{"type":"string"},"run":{"type":"string"},"uses":{"type":"string"},
			"with":{"$ref":"#/$defs/env"}},"oneOf":[{"required":["run"]},{"required":["uses"]}],
			"dependencies":{"with":["uses"]}}},
		"properties":{"on":{"oneOf":[{"enum":["push","pull_request"]},{"type":"array","items":{"enum":["push","pull_request"]},
			"minItems":1,"uniqueItems":true},{"type":"object","propertyNames":{"anyOf":[{"const":"push"},{"pattern":"^pull_"}]}}]},
			"secrets":{"oneOf":[{"$ref":"#/$defs/env"},{"type":"string","enum":["inherit"]}]},
			"jobs":{"type":"object","minProperties":1,"additionalProperties":false,"patternProperties":{
				"^[_a-z][a-z0-9_-]*$":{"type":"object","required":["steps"],"properties":{"env":{"$ref":"#/$defs/env"},
				"steps":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/step"}}}}}}}}`,
	"form of fields": `{"type":"array","minItems":1,"items":{"type":"object","required":["type"],"properties":{
		"type":{"enum":["text","number","choice"]}},"allOf":[
		{"if":{"properties":{"type":{"const":"text"}}},"then":{"properties":{"maxLength":{"type":"integer","minimum":0}}}},
		{"if":{"properties":{"type":{"const":"number"}}},"then":{"required":["minimum"],"properties":{"minimum":{"type":"number"}}}},
		{"if":{"properties":{"type":{"const":"choice"}}},"then":{"required":["options"],"properties":{"options":{"type":"array",
			"items":{"type":"string","minLength":1},"minItems":2,"uniqueItems":true}}}}]}}`,
	"resource of a " +
		"cluster": `{"type":"object","required":["apiVersion","kind","spec"],"properties":{"apiVersion":{"const":"v1"},
		"kind":{"type":"string"},"spec":{"type":"object","properties":{"replicas":{"type":"integer","format":"int32","minimum":0},
		"port":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]},
		"cpu":{"anyOf":[{"type":"integer"},{"type":"string"}],"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE])?$"},
		"labels":{"type":"object","additionalProperties":{"type":"string","pattern":"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
		"maxLength":63}}}}}}`,
	"rule of a linter": `{"type":"array","minItems":1,"items":[{"oneOf":[{"type":"integer","minimum":0,"maximum":2},
		{"type":"string","enum":["off","warn","error"]}]}],"additionalItems":{"oneOf":[{"type":"object",
		"properties":{"max":{"type":"integer"}},"additionalProperties":false},{"type":"object","properties":{
		"allow":{"type":"array","items":{"type":"string"}}},"required":["allow"],"additionalProperties":false},
		{"enum":["always","never"]}]}}`,
	"decimal as pydantic has " +
		"it": `{"type":"object","properties":{"price":{"anyOf":[{"type":"number","minimum":0},{"type":"string",
		"pattern":"^(?!^[-+.]*$)[+-]?0*(?:\\d{0,8}|(?=[\\d.]{1,11}0*$)\\d{0,8}\\.\\d{0,2}0*$)"},{"type":"null"}],"default":null}},
		"required":["price"]}`,
	"call of an editor's " +
		"tool": `{"type":"object","additionalProperties":false,"required":["file_path","edits"],"properties":{
		"file_path":{"type":"string","minLength":1},"replace_all":{"type":"boolean","default":false},"edits":{"type":"array",
		"minItems":1,"items":{"type":"object","required":["old_string","new_string"],"properties":{"old_string":{"type":"string"},
		"new_string":{"type":"string"}},"additionalProperties":false}},"timeout":{"type":"number","exclusiveMinimum":0,
		"maximum":600000}},"$schema":"http://json-schema.org/draft-07/schema#"}`,
	"addresses": `{"$id":"https://example.com/order","type":"object","properties":{"to":{"$ref":"/address"},
		"lines":{"type":"array","items":{"$ref":"line#item"},"minItems":1}},"required":["to","lines"],"$defs":{
		"a":{"$id":"/address","type":"object","properties":{"street":{"type":"string"},"country":{"$ref":"#/$defs/c"}},
		"required":["country"],"$defs":{"c":{"type":"string","pattern":"^[A-Z]{2}$"}}},
		"l":{"$id":"line","$defs":{"i":{"$anchor":"item","type":"object","required":["n"],"properties":{"n":{"type":"integer",
		"minimum":1,"multipleOf":1}}}}}}}`,
	"numbers " +
		"drawn": `{"type":"array","items":{"type":"integer","minimum":1,"maximum":49},"uniqueItems":true,"minItems":6,
		"maxItems":6}`,
}

// Answers under them are valid: some by the checker, and all are read.
func TestWrittenSchemas(t *testing.T) {
	v, r := testVocab(2000, 11), rand.New(rand.NewPCG(4, 8))
	unchecked := map[string]bool{"rule of a linter": true, "addresses": true, "manifest of a package": true,
		"workflow": true, "decimal as pydantic has it": true}
	for name, text := range writtenSchemas {
		g, err := FromSchema([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		root := decode(t, text)
		for i := range 12 {
			m := g.Matcher(v)
			got, cut := answer(t, m, r, m.Needs()+1+10*i)
			switch {
			case cut || !json.Valid([]byte(got)):
				t.Errorf("%s: %s is no whole answer", name, got)
			case !unchecked[name] && !(checker{root}).valid(root, decode(t, got)):
				t.Errorf("%s: %s is not valid", name, got)
			}
		}
	}
}
