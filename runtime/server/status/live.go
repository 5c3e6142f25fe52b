// Package status serves the state of the engine and the plan that it runs under, for the page of
// the server.
package status

import "sandwich/topotree"

// Live is the state of an engine. Its JSON form is stable. Totals count from the start of the
// engine.
type Live struct {
	// Model and State are set if several models are served; see generation.ModelInfo. A model that
	// is not loaded has no engine, and zero values in all other fields but Loading.
	Model   string  `json:"model,omitempty"`
	State   string  `json:"state,omitempty"`
	Loading float64 `json:"loading,omitempty"` // completed share of the load, 0 to 1
	Models  []Model `json:"models,omitempty"`  // that the API key may use

	Seconds  float64         `json:"uptime_s"`
	Lanes    []Lane          `json:"lanes"`
	Active   topotree.CPUSet `json:"active_pus"` // of the latest forward on the cores
	Lost     topotree.CPUSet `json:"lost_pus"`   // PUs of the plan that the process may not use at present
	Quota    float64         `json:"cpu_quota"`  // in CPUs; 0: unlimited
	Queue    []Class         `json:"queue"`
	Tokens   Tokens          `json:"tokens_total"`
	Prefill  Forwards        `json:"prefill_total"`
	Decode   Forwards        `json:"decode_total"`
	KV       KV              `json:"kv"`
	Switches int64           `json:"plan_switches_total"`
	Devices  int64           `json:"lost_devices_total"`
}

// Lane is a stream of forwards that run one at a time: the cores have one, each device has one.
type Lane struct {
	Name   string   `json:"name"`
	Cores  bool     `json:"cores"`
	Phases []string `json:"phases"` // whose forwards it runs
	Phase  string   `json:"phase"`  // of the forward in flight; "": none
	Rows   int      `json:"rows"`   // of that forward
}

// Class has the requests of a class.
type Class struct {
	Class   string `json:"class"`
	Waiting int    `json:"waiting"`
	Running int    `json:"running"`
}

// Tokens are totals.
type Tokens struct {
	Prompt    int64 `json:"prompt"`
	Reused    int64 `json:"reused"` // prompt tokens taken from the prefix cache
	Loaded    int64 `json:"loaded"` // prompt tokens loaded from the prefix store on disk
	Generated int64 `json:"generated"`
	Drafted   int64 `json:"drafted"`
	Accepted  int64 `json:"accepted"` // of the drafted tokens
}

// Forwards are totals of a phase.
type Forwards struct {
	Count   int64   `json:"forwards"`
	Seconds float64 `json:"seconds"`
}

// KV is the use of the KV cache.
type KV struct {
	Blocks      int `json:"blocks"`
	Free        int `json:"free"`
	BlockTokens int `json:"block_tokens"`
}

// Model is the state of one of several models.
type Model struct {
	ID    string `json:"id"`
	State string `json:"state"`
}
