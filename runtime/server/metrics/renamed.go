package metrics

import "slices"

// rename is a metric that is also written under its previous name, for one release. Series that
// differ only in labels that the previous name did not have are added up.
type rename struct {
	old, name string
	labels    []string // of the previous name; nil: those of the metric
}

// none are the labels of a metric without labels.
var none = []string{}

// renamed lists the previous names. docs/operations.md lists them as well.
var renamed = []rename{
	{"sandwich_request_seconds", "sandwich_request_duration_seconds", none},
	{"sandwich_queue_seconds", "sandwich_queue_duration_seconds", []string{"class"}},
	{"sandwich_engine_waiting", "sandwich_waiting_requests", []string{"class"}},
	{"sandwich_engine_running", "sandwich_running_requests", []string{"class"}},
	{"sandwich_cpu_quota", "sandwich_cpu_quota_cores", nil},
	{"sandwich_plan_switch_last_seconds", "sandwich_plan_last_switch_duration_seconds", nil},
	{"sandwich_draft_bytes", "sandwich_drafter_memory_bytes", nil},
	{"sandwich_grammars_bytes", "sandwich_grammar_cache_bytes", nil},
	{"sandwich_memory_remote_fraction", "sandwich_memory_remote_ratio", nil},
	{"sandwich_worker_chunks_apart_total", "sandwich_worker_private_chunks_total", nil},
	{"sandwich_worker_chunks_again_total", "sandwich_worker_recomputed_chunks_total", nil},
	{"sandwich_worker_left_out_total", "sandwich_worker_exclusions_total", nil},
	{"sandwich_log_dropped_total", "sandwich_log_dropped_lines_total", nil},
	{"sandwich_device_lost_total", "sandwich_lost_devices_total", nil},
	{"sandwich_device_divided_total", "sandwich_divided_prefills_total", nil},
	{"sandwich_prefix_store_loading", "sandwich_prefix_store_loading_requests", nil},
	{"sandwich_prefix_store_evicted_total", "sandwich_prefix_store_evicted_blocks_total", nil},
	{"sandwich_prefix_store_damaged_total", "sandwich_prefix_store_damaged_blocks_total", nil},
	{"sandwich_prefix_store_dropped_total", "sandwich_prefix_store_dropped_prefixes_total", nil},
	{"sandwich_prefix_store_bytes", "sandwich_prefix_store_size_bytes", nil},
	{"go_memory_heap_objects_bytes", "go_memstats_heap_alloc_bytes", nil},
}

// withOldNames adds the metrics under their previous names.
func withOldNames(samples []Metric, hists []namedHistogram) ([]Metric, []namedHistogram) {
	for i := range renamed {
		r := &renamed[i]
		var under []Metric
		for _, m := range samples {
			if m.Name != r.name {
				continue
			}
			m.Name, m.Labels, m.Help = r.old, r.kept(m.Labels), r.help()
			at := slices.IndexFunc(under, func(o Metric) bool { return slices.Equal(o.Labels, m.Labels) })
			if at < 0 {
				under = append(under, m)
			} else {
				under[at].Value += m.Value
			}
		}
		samples = append(samples, under...)
		for _, h := range hists {
			if h.name == r.name {
				hists = append(hists, h.under(r))
			}
		}
	}
	return samples, hists
}

func (r *rename) help() string { return "Deprecated: use " + r.name + "." }

// kept returns the labels that the previous name had.
func (r *rename) kept(labels [][2]string) (out [][2]string) {
	if r.labels == nil {
		return labels
	}
	for _, l := range labels {
		if slices.Contains(r.labels, l[0]) {
			out = append(out, l)
		}
	}
	return out
}

// under returns the histogram under its previous name.
func (h *namedHistogram) under(r *rename) namedHistogram {
	old := namedHistogram{name: r.old, help: r.help()}
	for i := range h.of {
		labels := r.kept(h.of[i].labels)
		at := slices.IndexFunc(old.of, func(o labeled) bool { return slices.Equal(o.labels, labels) })
		if at < 0 {
			at = len(old.of)
			old.of = append(old.of, labeled{labels: labels})
		}
		old.of[at].add(&h.of[i].histogram)
	}
	return old
}

// add adds the observations of another histogram.
func (h *histogram) add(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.sum += o.sum
}
