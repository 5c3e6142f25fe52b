package answer

import (
	"strconv"

	"sandwich/runtime/api"
	"sandwich/runtime/energy"
	"sandwich/runtime/engine"
	"sandwich/runtime/engine/drafting"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/server/metrics"
)

// Metrics returns the counters and gauges of the engine for /metrics.
func (g *Generator) Metrics() []metrics.Metric {
	s := g.engine.Stats()
	var out []metrics.Metric
	counter := func(name, help string, v float64, labels ...[2]string) {
		out = append(out, metrics.Metric{Name: "sandwich_" + name, Help: help, Counter: true, Labels: labels, Value: v})
	}
	gauge := func(name, help string, v float64, labels ...[2]string) {
		out = append(out, metrics.Metric{Name: "sandwich_" + name, Help: help, Labels: labels, Value: v})
	}
	gauge("info", "1, with what is served as labels.", 1,
		append([][2]string{{"model", g.model.ID}, {"model_digest", g.model.Digest}}, g.info...)...)
	phase := func(p string) [2]string { return [2]string{"phase", p} }
	counter("engine_requests_total", "Requests submitted to the engine.", float64(s.Requests))
	counter("engine_prompt_tokens_total", "Prompt tokens submitted.", float64(s.PromptTokens))
	counter("engine_generated_tokens_total", "Tokens generated.", float64(s.GeneratedTokens))
	counter("engine_reused_tokens_total", "Prompt tokens taken from the prefix cache instead of computed.",
		float64(s.Scheduler.ReusedTokens))
	counter("engine_forwards_total", "Forward passes.", float64(s.Prefills), phase("prefill"))
	counter("engine_forwards_total", "Forward passes.", float64(s.Decodes), phase("decode"))
	counter("engine_forward_seconds_total", "Time in forward passes.", s.PrefillTime.Seconds(), phase("prefill"))
	counter("engine_forward_seconds_total", "Time in forward passes.", s.DecodeTime.Seconds(), phase("decode"))
	counter("engine_evictions_total", "Sequences left out of a decode batch, with their KV blocks, once for "+
		"each batch.", float64(s.Scheduler.Evictions))
	counter("engine_preemptions_total", "Sequences that lost their KV blocks for want of free ones.",
		float64(s.Scheduler.Preemptions))
	counter("engine_recomputed_tokens_total", "Positions computed again after their blocks were lost.",
		float64(s.Scheduler.RecomputedTokens))
	counter("engine_prefill_stops_total", "Prefills halted between two ops.", float64(s.Scheduler.Stops))
	counter("engine_quanta_total", "Quanta of proactive prefill next to reactive work.", float64(s.Scheduler.Quanta))
	counter("engine_promotions_total", "Proactive requests that aged.", float64(s.Scheduler.Promotions))
	counter("engine_rejections_total", "Requests the scheduler refused.", float64(s.Scheduler.Rejections))
	counter("plan_switches_total", "Hot switches between the prefill and the decode plan.", float64(s.Pool.Switches))
	if n := len(s.Pool.Durations); n > 0 {
		gauge("plan_last_switch_duration_seconds", "Duration of the latest hot switch.",
			s.Pool.Durations[n-1].Seconds())
	}
	gauge("plan_verdict", "1 for the verdict of plan verify when the plan was loaded.", 1,
		[2]string{"verdict", string(g.verdict)})
	gauge("plan_active_pus", "Active PUs of the current phase.", float64(len(s.Pool.Active)))
	lost := s.Pool.Total()
	counter("worker_private_chunks_total", "Chunks of ops that workers at risk of losing their CPU computed into "+
		"private buffers.", float64(lost.Private))
	counter("worker_recomputed_chunks_total", "Chunks of ops computed a second time, because the worker that had them "+
		"lost its CPU.", float64(lost.Taken))
	counter("worker_exclusions_total", "Times a worker was left out until it had its CPU again.", float64(lost.Left))
	gauge("plan_lost_pus", "PUs of the plan that the system took away since.", float64(len(s.Places.Lost)))
	counter("lost_devices_total", "Devices that failed; their requests continued on the cores.", float64(s.LostDevices))
	counter("divided_prefills_total", "Prefills that a device and the cores computed together.", float64(s.Divided))
	gauge("cpu_quota_cores", "CPU time per time that cgroups grant; 0 when unlimited.", s.Quota)
	out = append(out, draftMetrics(s.Drafts)...)
	out = append(out, requestMetrics(s)...)
	g.cache.mu.Lock()
	counter("grammars_compiled_total", "Grammars of formats and tools that were compiled.", float64(g.cache.compiled))
	counter("grammars_reused_total", "Requests whose grammar was there already.", float64(g.cache.reused))
	gauge("grammar_cache_bytes", "Memory of grammars that no request uses at the moment.",
		float64(g.cache.kept(cacheBytes)))
	g.cache.mu.Unlock()
	if s.Prefixes != nil {
		out = append(out, prefixMetrics(s)...)
	}
	gauge("memory_bytes", "Memory off the Go heap.", float64(s.Memory.Weights), [2]string{"what", "weights"})
	gauge("memory_bytes", "Memory off the Go heap.", float64(s.Memory.KV), [2]string{"what", "kv"})
	gauge("memory_bytes", "Memory off the Go heap.", float64(s.Memory.Activations), [2]string{"what", "activations"})
	if places, err := g.engine.Placement(); err == nil {
		out = append(out, placementMetrics(places)...)
	}
	return append(out, EnergyMetrics(g.meter)...)
}

// requestMetrics returns the gauges of requests and of the KV blocks that they hold.
func requestMetrics(s engine.Stats) (out []metrics.Metric) {
	gauge := func(name, help string, v float64, labels ...[2]string) {
		out = append(out, metrics.Metric{Name: "sandwich_" + name, Help: help, Labels: labels, Value: v})
	}
	var waiting, running int
	for _, class := range []api.Class{api.Reactive, api.Proactive} {
		of, waits, runs := [2]string{"class", class.String()}, s.Scheduler.Waiting[class], s.Scheduler.Running[class]
		gauge("waiting_requests", "Requests that wait.", float64(waits), of)
		gauge("running_requests", "Requests that hold KV blocks: they run, or pause for more urgent ones.",
			float64(runs), of)
		waiting, running = waiting+waits, running+runs
	}
	// Gateways read one series without labels, and cannot add up others.
	gauge("requests_waiting", "Requests that wait, of all classes, for gateways.", float64(waiting))
	gauge("requests_running", "Requests that hold KV blocks, of all classes, for gateways.", float64(running))
	blocks, free := s.Scheduler.Blocks, s.Scheduler.Free
	gauge("kv_blocks", "KV blocks.", float64(blocks))
	gauge("kv_blocks_free", "KV blocks that no sequence holds.", float64(free))
	gauge("kv_block_tokens", "Positions of a KV block.", kvcache.BlockTokens)
	gauge("kv_cache_usage_ratio", "Fraction of the KV blocks that sequences hold.",
		float64(blocks-free)/float64(max(1, blocks)))
	return out
}

// EnergyMetrics returns the metrics of the energy that a meter reads. The meter may be nil.
func EnergyMetrics(m *energy.Meter) []metrics.Metric { return energyMetrics(m.Read()) }

// energyMetrics returns the counters of energy by source, and a gauge for each source that is not
// readable.
func energyMetrics(r energy.Reading) (out []metrics.Metric) {
	for _, s := range r {
		labels := [][2]string{{"source", s.Name}, {"domain", string(s.Domain)}}
		if s.Err != nil {
			out = append(out, metrics.Metric{Name: "sandwich_energy_not_readable",
				Help:   "1 for a source of energy that cannot be read, with the reason.",
				Labels: append(labels, [2]string{"reason", s.Err.Error()}), Value: 1})
			continue
		}
		out = append(out, metrics.Metric{Name: "sandwich_energy_joules_total",
			Help: "Energy of the machine since the start, by source. Packages include core and uncore but not dram; " +
				"psys includes all of them.",
			Counter: true, Labels: labels, Value: s.Joules})
	}
	return out
}

// prefixMetrics returns the counters and gauges of the prefix store.
func prefixMetrics(s engine.Stats) (out []metrics.Metric) {
	p := s.Prefixes
	add := func(name, help string, counter bool, v float64, labels ...[2]string) {
		out = append(out, metrics.Metric{Name: "sandwich_prefix_store_" + name, Help: help, Counter: counter,
			Labels: labels, Value: v})
	}
	const prompts = "Prompts by whether the prefix store had a prefix of them."
	add("prompts_total", prompts, true, float64(p.Hits), [2]string{"found", "yes"})
	add("prompts_total", prompts, true, float64(p.Misses), [2]string{"found", "no"})
	add("loaded_tokens_total", "Prompt tokens loaded from disk instead of computed.", true,
		float64(s.Scheduler.LoadedTokens))
	add("load_seconds_total", "Time of loads from disk.", true, p.LoadTime.Seconds())
	add("loading_requests", "Requests whose prefix is being loaded.", false, float64(s.Scheduler.Loading))
	add("failed_loads_total", "Loads that failed or were cancelled; their prompts are computed.", true,
		float64(p.Failed))
	add("read_bytes_total", "Bytes of blocks read.", true, float64(p.ReadBytes))
	add("written_bytes_total", "Bytes of blocks written.", true, float64(p.WrittenBytes))
	add("evicted_blocks_total", "Blocks that this process removed to keep the limit.", true, float64(p.Evicted))
	add("damaged_blocks_total", "Blocks that were damaged and removed.", true, float64(p.Damaged))
	add("dropped_prefixes_total", "Prefixes not written because too many others waited.", true, float64(p.Dropped))
	add("size_bytes", "Size of all blocks, as this process knows it.", false, float64(p.Bytes))
	return out
}

// draftMetrics returns the counters and gauges of drafters.
func draftMetrics(drafts []drafting.Counts) (out []metrics.Metric) {
	for _, d := range drafts {
		of := [][2]string{{"drafter", d.Name}}
		out = append(out,
			metrics.Metric{Name: "sandwich_draft_tokens_total", Help: "Drafted tokens that decode batches verified.",
				Counter: true, Labels: of, Value: float64(d.Drafted)},
			metrics.Metric{Name: "sandwich_draft_accepted_tokens_total", Help: "Drafted tokens that were accepted.",
				Counter: true, Labels: of, Value: float64(d.Accepted)},
			metrics.Metric{Name: "sandwich_drafter_memory_bytes", Help: "Memory of a drafter.", Labels: of,
				Value: float64(d.Bytes)})
	}
	return out
}

// placementMetrics returns the gauges of memory placement.
func placementMetrics(places []forward.Placement) (out []metrics.Metric) {
	misplaced := 0
	gauge := func(name, help string, v float64, labels ...[2]string) {
		out = append(out, metrics.Metric{Name: "sandwich_memory_" + name, Help: help, Labels: labels, Value: v})
	}
	for _, p := range places {
		if p.Misplaced {
			misplaced++
		}
		labels := [][2]string{{"rank", strconv.Itoa(p.Rank)}, {"what", p.What}}
		gauge("moved_bytes", "Memory that is at another address or node than at the start, from a sample of "+
			"pages: hot switches move none.", float64(p.Moved), labels...)
		if p.Node == mem.AnyNode {
			continue
		}
		gauge("remote_ratio", "Fraction of the memory outside the node that its rank binds it to, from a "+
			"sample of pages.", p.Remote, labels...)
	}
	out = append(out, metrics.Metric{Name: "sandwich_memory_fallbacks_total", Counter: true, Value: float64(misplaced),
		Help: "Buffers that are partly or completely on another node because theirs had too little free memory."})
	return out
}
