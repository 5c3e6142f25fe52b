package responses

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/jsontext"
)

// inputItems is the end of the path of the input of an answer.
const inputItems = "/input_items"

// Numbers of items of a page.
const (
	defaultItems = 20
	maxItems     = 100
)

// listItems answers GET /v1/responses/{id}/input_items with a page of the input of an answer. The
// last item comes first unless the query has order=asc.
func listItems(w http.ResponseWriter, r *http.Request, t *turn) {
	items := make([]map[string]json.RawMessage, len(t.input))
	ids := make([]string, len(items))
	for i, raw := range t.input {
		items[i], ids[i] = listedItem(t.id, i, raw)
	}
	query := r.URL.Query()
	switch order := query.Get("order"); order {
	case "", "desc":
		slices.Reverse(items)
		slices.Reverse(ids)
	case "asc":
	default:
		apierr.Invalid("order", "is %q; use asc or desc", jsontext.Clip(order)).Write(w)
		return
	}
	limit := defaultItems
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxItems {
			apierr.Invalid("limit", "is %q; use a number from 1 to %d", jsontext.Clip(text), maxItems).Write(w)
			return
		}
		limit = n
	}
	from := 0
	if after := query.Get("after"); after != "" {
		if from = slices.Index(ids, after) + 1; from == 0 {
			apierr.Invalid("after", "is %q, which is no item of the input", jsontext.Clip(after)).Write(w)
			return
		}
	}
	to := min(from+limit, len(items))
	page := map[string]any{"object": "list", "data": items[from:to], "has_more": to < len(items), "first_id": nil,
		"last_id": nil}
	if to > from {
		page["first_id"], page["last_id"] = ids[from], ids[to-1]
	}
	body, err := json.Marshal(page)
	if err != nil { // the items are valid JSON
		apierr.Invalid("input", "cannot be listed: %v", err).Write(w)
		return
	}
	jsontext.Write(w, http.StatusOK, body)
}

// listedItem returns an item of the input with the fields that short forms leave out, and its id.
func listedItem(answer string, i int, raw json.RawMessage) (item map[string]json.RawMessage, id string) {
	_ = json.Unmarshal(raw, &item) // stored items are objects
	if item == nil {
		item = map[string]json.RawMessage{}
	}
	if jsontext.IsEmpty(item["type"]) {
		item["type"] = json.RawMessage(`"message"`)
	}
	if text := item["content"]; len(text) > 0 && text[0] == '"' && string(item["type"]) == `"message"` {
		kind := "input_text"
		if string(item["role"]) == `"assistant"` {
			kind = "output_text"
		}
		item["content"] = fmt.Appendf(nil, `[{"type":%q,"text":%s}]`, kind, text)
	}
	if id = itemID(raw); id == "" {
		id = fmt.Sprintf("item_%s_%d", strings.TrimPrefix(answer, "resp_"), i)
		item["id"] = jsontext.AppendString(nil, id)
	}
	return item, id
}
