// Package llmd writes the configuration of llm-d's router 0.9: its endpoint picker (EPP), the list
// of endpoints, and Envoy.
package llmd

import (
	"fmt"
	"math"

	"sandwich/plans/export/replica"
	"sandwich/plans/export/sheet"
)

// Config describes the servers behind the router.
type Config struct {
	Replicas []replica.Replica
	Prefill  float64 // measured rate in tokens/s; 0: unknown
	Kind     string  // of host; a label value
}

// Check returns an error if llm-d cannot use the configuration.
func (c *Config) Check() error {
	for _, r := range c.Replicas {
		if !r.IsIPv4() {
			return fmt.Errorf("llm-d's list of endpoints takes IPv4 addresses only; replace %s", r)
		}
	}
	return nil
}

// Picker adds the configuration of the endpoint picker to s.
func Picker(s *sheet.Sheet, c Config) {
	s.Note("llm-d router 0.9: epp --pool-name sandwich --pool-namespace default --config-file epp.yaml")
	s.Note("The picker reads /metrics at the address of each replica: those with API keys need --open-metrics.")
	if c.Prefill > 0 {
		s.Note("peakPrefillThroughput is the median prefill rate of the plan, measured by tune.")
	} else {
		s.Note("The plan has no measured prefill rate: tune it, or replace peakPrefillThroughput by tokens/s.")
	}
	s.Line(picker, int64(max(1, math.Round(c.Prefill))))
}

// Endpoints adds the list of endpoints to s.
func Endpoints(s *sheet.Sheet, c Config) {
	s.Note("The picker watches this file. Replace it by renaming a complete file over it.")
	s.Line("endpoints:")
	for i, r := range c.Replicas {
		s.Line("  - name: sandwich-%d\n    address: %q\n    port: \"%d\"", i+1, r.Host, r.Port)
		s.Line("    labels: {llm-d.ai/engine-type: sandwich, sandwich.dev/kind: %q}", c.Kind)
	}
}

// Envoy adds the configuration of Envoy to s.
func Envoy(s *sheet.Sheet) {
	s.Note("Envoy 1.31 or later: envoy -c envoy.yaml")
	s.Add(envoy)
}

const picker = `apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
  - type: file-discovery
    name: endpoints
    parameters:
      path: /etc/epp/endpoints.yaml
      watchFile: true
  - type: metrics-data-source
    name: metrics
  - type: core-metrics-extractor
    name: sandwich-metrics
    parameters:
      defaultEngine: sandwich
      engineConfigs:
        - name: sandwich
          queuedRequestsSpec: sandwich_requests_waiting
          runningRequestsSpec: sandwich_requests_running
          kvUsageSpec: sandwich_kv_cache_usage_ratio
          cacheBlockSizeSpec: sandwich_kv_block_tokens
          cacheNumBlocksSpec: sandwich_kv_blocks
  - type: approx-prefix-cache-producer
    parameters:
      autoTune: true
  - type: inflight-load-producer
  - type: prefix-cache-affinity-filter
    name: affinity
    parameters:
      affinityThreshold: 0.5
      maxTTFTPenaltyMs: 5000
      ttftSource: prefillThroughput
      peakPrefillThroughput: %d
  - type: prefix-cache-scorer
    name: prefix
  - type: queue-scorer
    name: queue
  - type: kv-cache-utilization-scorer
    name: kv
  - type: max-score-picker
    name: best
  - type: single-profile-handler
schedulingProfiles:
  - name: default
    plugins:
      - pluginRef: affinity
      - pluginRef: prefix
        weight: 3
      - pluginRef: queue
        weight: 2
      - pluginRef: kv
        weight: 1
      - pluginRef: best
dataLayer:
  discovery:
    pluginRef: endpoints
  sources:
    - pluginRef: metrics
      extractors:
        - pluginRef: sandwich-metrics`
