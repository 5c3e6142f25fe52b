package heuristic

import (
	"maps"
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans/internal/hosttest"
	"sandwich/profiles"
	"sandwich/roofline"
)

// TestDefaultAttention checks that a dot product is chosen if measured rates justify its rounding
// and products round too, or if it is requested.
func TestDefaultAttention(t *testing.T) {
	slow := map[string]float64{"f32": 200e9, "dpbf16": 120e9, "tdpbf16": 250e9}
	quick := map[string]float64{"f32": 200e9, "dpbf16": 330e9, "tdpbf16": 800e9, "f32-step": 100e9,
		"dpbf16-step": 120e9, "tdpbf16-step": 80e9, "dpbusd": 500e9, "dpbusd-step": 110e9}
	pairs := map[string]float64{"f32": 200e9, "dpbf16": 330e9, "f32-step": 100e9, "dpbf16-step": 120e9}
	lame := maps.Clone(quick)
	lame["tdpbf16-step"], lame["dpbf16-step"], lame["dpbusd-step"] = 60e9, 70e9, 70e9
	halfKnown := maps.Clone(quick)
	delete(halfKnown, "tdpbf16-step")
	delete(halfKnown, "dpbf16-step")
	for name, c := range map[string]struct {
		rates map[string]float64
		typ   string
		o     Options
		want  microkernel.AttentionDot
	}{
		"quick tiles":      {quick, "q8_0", Options{}, microkernel.AttendTDPBF16},
		"quick pairs":      {pairs, "q8_0", Options{}, microkernel.AttendDPBF16},
		"integers":         {quick, "q8_0", Options{KV: "q8_0"}, microkernel.AttendDPBUSD},
		"slow integers":    {lame, "q8_0", Options{KV: "q8_0"}, microkernel.AttendF32},
		"integers unknown": {pairs, "q8_0", Options{KV: "q8_0"}, microkernel.AttendF32},
		"exact and scaled": {quick, "f32", Options{KV: "q8_0"}, microkernel.AttendF32},
		"slow steps":       {lame, "q8_0", Options{}, microkernel.AttendF32},
		"steps not known":  {halfKnown, "q8_0", Options{}, microkernel.AttendF32},
		"slow":             {slow, "q8_0", Options{}, microkernel.AttendF32},
		"not measured":     {nil, "q8_0", Options{}, microkernel.AttendF32},
		"exact weights":    {quick, "f32", Options{}, microkernel.AttendF32},
		"exact products":   {quick, "q8_0", Options{Compute: "f32"}, microkernel.AttendF32},
		"exact cache":      {quick, "q8_0", Options{KV: "f32"}, microkernel.AttendF32},
		"narrower vectors": {quick, "q8_0", Options{ISA: "avx2"}, microkernel.AttendF32},
		"asked for f32":    {quick, "q8_0", Options{Attend: "f32"}, microkernel.AttendF32},
		"asked for pairs":  {quick, "f32", Options{Attend: "dpbf16"}, microkernel.AttendDPBF16},
	} {
		h := hosttest.Attending(t, c.rates, hosttest.Tiles...)
		p := mustDefault(t, h, llama160m(c.typ), c.o)
		if p.Attention != c.want || p.Exact() != c.want.Exact() {
			t.Errorf("%s: attention by %s, exact %v", name, p.Attention, p.Exact())
		}
	}
}

func TestAttentionRefused(t *testing.T) {
	for want, o := range map[string]Options{
		"attention by tdpbf16: avx512 on this CPU": {Attend: "tdpbf16"},
		"attention by dpbf16: avx2 on this CPU":    {Attend: "dpbf16", ISA: "avx2"},
		"use f32, dpbf16, tdpbf16, dpbusd":         {Attend: "amx"},
		"needs a q8_0 KV cache, not f16":           {Attend: "dpbusd"},
		"attention by dpbusd: avx2 on this CPU":    {Attend: "dpbusd", KV: "q8_0", ISA: "avx2"},
	} {
		_, err := Default(hosttest.Cores(t, 2, hosttest.BF16...), llama160m("q8_0"), o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestAttentionWords checks that the choice is described with its rates, and whether the rates that
// it needs are known.
func TestAttentionWords(t *testing.T) {
	rates := map[string]float64{"f32": 200e9, "dpbf16": 120e9, "tdpbf16": 800e9, "f32-step": 100e9,
		"dpbf16-step": 100e9, "tdpbf16-step": 100e9}
	h := hosttest.Attending(t, rates, hosttest.Tiles...)
	if got := choiceOn(h); !strings.Contains(got, "4.00 times the 200 of f32") {
		t.Error(got)
	}
	if !AttentionKnown(h, microkernel.AVX512, Options{}) || !AttentionOpen(h, llama160m("q8_0"), Options{}) ||
		AttentionOpen(h, llama160m("f32"), Options{}) {
		t.Error("known and open to q8_0 models alone")
	}
	scaled := Options{KV: "q8_0"}
	if AttentionKnown(h, microkernel.AVX512, scaled) || !AttentionOpen(h, llama160m("q8_0"), scaled) ||
		AttentionOpen(h, llama160m("q8_0"), Options{KV: "f32"}) {
		t.Error("integers are open, and were not measured")
	}
	delete(rates, "tdpbf16")
	h = hosttest.Attending(t, rates, hosttest.Tiles...)
	if got := choiceOn(h); !strings.Contains(got, "uses float32") {
		t.Error(got)
	}
	if AttentionKnown(h, microkernel.AVX512, Options{}) {
		t.Error("tiles were not measured")
	}
}

func choiceOn(h *profiles.Profile) string {
	return AttentionChoice(Options{}, roofline.NewMachine(h).AttentionRates(microkernel.AVX512),
		roofline.NewMachine(h).AttentionStepRates(microkernel.AVX512))
}
