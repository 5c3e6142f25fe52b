package fields

import (
	"cmp"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/jsontext"
)

// encoding/json ignores unknown fields. A request with a misspelled temperature or an unsupported
// grammar would then get a different answer than it asked for. The functions in this file check
// every field name of a body.

// maxFields bounds the fields of a body; it is twice the length of the longest list of known
// fields.
const maxFields = 256

// unsupported lists fields of other servers that would change the answer, each with the value that
// does not; "" stands for false.
var unsupported = map[string]string{
	"format":                     "",
	"guided_regex":               "",
	"structural_tag":             "",
	"guided_whitespace_pattern":  "",
	"logits_processors":          "",
	"allowed_token_ids":          "",
	"bad_words":                  "",
	"stop_token_ids":             "",
	"min_tokens":                 "0",
	"include_stop_str_in_output": "",
	"use_beam_search":            "",
	"truncate_prompt_tokens":     "-1",
	"prompt_logprobs":            "0",
	"chat_template":              "",
	"documents":                  "",
	"skip_special_tokens":        "true",
	"mirostat":                   "0",
	"typical":                    "1",
	"typical_p":                  "1",
	"tfs_z":                      "1",
	"top_a":                      "0",
	"top_n_sigma":                "-1",
	"dry_multiplier":             "0",
	"xtc_probability":            "0",
	"dynatemp_range":             "0",
	"lora":                       "",
}

// harmless lists fields that clients send and that have no effect: accounting, hints, and
// parameters of samplers that the fields above enable.
var harmless = sync.OnceValue(func() map[string]bool {
	return fieldSet(`
	metadata store function_call reasoning verbosity audio prediction
	prompt_cache_key prompt_cache_retention safety_identifier
	cache_prompt id_slot slot_id n_keep n_discard min_keep t_max_predict_ms timings_per_token
	return_tokens post_sampling_probs response_fields reasoning_format mode keep_alive
	mirostat_tau mirostat_eta dry_base dry_allowed_length dry_penalty_last_n dry_sequence_breakers
	xtc_threshold dynatemp_exponent length_penalty early_stopping
	spaces_between_special_tokens request_id guided_decoding_backend return_token_ids
	return_tokens_as_token_ids
	provider models transforms route usage
`)
})

// fieldSet returns the words of a list as a set.
func fieldSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(list) {
		set[name] = true
	}
	return set
}

// Names returns a function that lists the JSON fields of a struct, computed on first use.
func Names[T any]() func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		set := map[string]bool{}
		for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
			if name := f.Tag.Get("json"); name != "" {
				set[name] = true
			}
		}
		return set
	})
}

// Check checks the field names of a valid JSON body. It returns an error for unsupported
// fields and for probable misspellings of known fields, and the names of all other unknown fields.
// more lists further unsupported fields of an endpoint, like unsupported.
func Check(body []byte, known map[string]bool, more ...map[string]string) (unknown []string, e *apierr.Error) {
	n := 0
	for name, value := range jsontext.Members(body) {
		if n++; n > maxFields {
			return nil, apierr.New(http.StatusBadRequest, apierr.TypeInvalid, "",
				"the body has more than the %d fields accepted", maxFields)
		}
		if known[name] || harmless()[name] {
			continue
		}
		neutral, refused := unsupported[name]
		for i := 0; i < len(more) && !refused; i++ {
			neutral, refused = more[i][name]
		}
		switch {
		case refused && Neutral(value, neutral):
			continue
		case refused:
			return nil, apierr.Invalid(name, "is not supported and would change the answer; leave it out")
		}
		if meant := nearest(name, known); meant != "" {
			return nil, apierr.Invalid(name, "is not a field of this API; did you mean %s?", meant)
		}
		unknown = append(unknown, jsontext.Clip(name))
	}
	return unknown, nil
}

// Neutral reports whether an unsupported field has a value without effect.
func Neutral(value json.RawMessage, neutral string) bool {
	if jsontext.IsEmpty(value) || string(value) == cmp.Or(neutral, "false") {
		return true
	}
	v, err := strconv.ParseFloat(string(value), 64)
	n, e := strconv.ParseFloat(neutral, 64)
	return err == nil && e == nil && v == n
}
