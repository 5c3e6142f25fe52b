package answer

import (
	"encoding/json"
	"testing"
	"time"

	"sandwich/runtime/engine"
	"sandwich/runtime/engine/drafting"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool"
	"sandwich/runtime/sched"
)

// TestLiveOf checks the JSON of a state: workers 0 and 2 of three are active, worker 1 lost its PU,
// and a device runs a prompt.
func TestLiveOf(t *testing.T) {
	s := engine.Stats{
		Counts: engine.Counts{PromptTokens: 50, GeneratedTokens: 9, Prefills: 2, Decodes: 8,
			PrefillTime: time.Second, DecodeTime: 2 * time.Second, LostDevices: 1},
		Lanes: []engine.LaneState{
			{Name: "cores", Cores: true, Phases: []phase.Phase{phase.Decode}},
			{Name: "cuda:0", Phases: []phase.Phase{phase.Prefill}, Busy: true, Phase: phase.Prefill, Rows: 512},
		},
		Scheduler: sched.Stats{Waiting: [2]int{1, 4}, Running: [2]int{2, 0}, Blocks: 10, Free: 7, ReusedTokens: 20,
			LoadedTokens: 5},
		Pool:   pool.Stats{Active: []int{0, 2, 9}, Switches: 3}, // 9: a worker of which no PU is known
		Places: pool.Places{At: []int{4, 5, 6}, Lost: []int{1}},
		Quota:  1.5,
		Drafts: []drafting.Counts{{Drafted: 8, Accepted: 3}, {Drafted: 2, Accepted: 1}},
	}
	live := liveOf(&s)
	live.Seconds = 60
	got, err := json.Marshal(live)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"uptime_s":60,"lanes":[{"name":"cores","cores":true,"phases":["decode"],"phase":"","rows":0},` +
		`{"name":"cuda:0","cores":false,"phases":["prefill"],"phase":"prefill","rows":512}],"active_pus":"4,6",` +
		`"lost_pus":"5","cpu_quota":1.5,"queue":[{"class":"reactive","waiting":1,"running":2},` +
		`{"class":"proactive","waiting":4,"running":0}],"tokens_total":{"prompt":50,"reused":20,"loaded":5,` +
		`"generated":9,"drafted":10,"accepted":4},"prefill_total":{"forwards":2,"seconds":1},` +
		`"decode_total":{"forwards":8,"seconds":2},"kv":{"blocks":10,"free":7,"block_tokens":64},` +
		`"plan_switches_total":3,"lost_devices_total":1}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestPUsOf checks that threads that are not pinned have no PU.
func TestPUsOf(t *testing.T) {
	if got := pusOf([]int{0, 1}, []int{-1, -1}); !got.IsEmpty() {
		t.Errorf("PUs %s of threads that are not pinned", got)
	}
	if got := pusOf(nil, nil); !got.IsEmpty() {
		t.Errorf("PUs %s of no worker", got)
	}
}
