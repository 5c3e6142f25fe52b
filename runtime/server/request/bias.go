package request

import (
	"encoding/json"
	"strconv"

	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/fields"
	"sandwich/runtime/server/jsontext"
)

// parseBias reads {"ID": bias} or llama-server's [[ID, bias], ...], in which false bans a token.
func parseBias(raw json.RawMessage) (map[int32]float32, *apierr.Error) {
	const field = "logit_bias"
	if jsontext.IsEmpty(raw) {
		return nil, nil
	}
	bias := map[int32]float32{}
	put := func(id, value string) *apierr.Error {
		if value == "false" {
			value = "-100"
		}
		n, err := strconv.ParseInt(id, 10, 32)
		v, wrong := strconv.ParseFloat(value, 64)
		switch {
		case err != nil || n < 0:
			return apierr.Invalid(field, "contains %q, which is not a token id", jsontext.Clip(id))
		case wrong != nil || !(v >= -100 && v <= 100):
			return apierr.Invalid(field, "gives token %d the bias %s; use a number from -100 to 100", n,
				jsontext.Clip(value))
		case len(bias) == maxBias:
			return apierr.Invalid(field, "has more than the %d tokens accepted", maxBias)
		}
		bias[int32(n)] = float32(v)
		return nil
	}
	if raw[0] == '[' {
		return bias, fields.Each(raw, field, maxBias, func(_ int, item json.RawMessage) *apierr.Error {
			var pair []json.RawMessage
			if json.Unmarshal(item, &pair) != nil || len(pair) != 2 {
				return apierr.Invalid(field, "must be an object from token ids to biases or a list of pairs of id "+
					"and bias")
			}
			id := string(pair[0])
			if n, whole := jsontext.ParseInteger(id); whole {
				id = strconv.FormatInt(n, 10)
			}
			return put(id, string(pair[1]))
		})
	}
	if raw[0] != '{' {
		return nil, apierr.Invalid(field, "must be an object from token ids to biases or a list of pairs of id and "+
			"bias")
	}
	for id, value := range jsontext.Members(raw) {
		if e := put(id, string(value)); e != nil {
			return nil, e
		}
	}
	return bias, nil
}

// maxBias bounds the biased tokens of a request, each of which costs time per generated token.
const maxBias = 1024
