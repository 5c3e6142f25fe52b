package profiles

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// Sources named in the notes and figures of built-in machines.
const (
	sandwichPaper = "Sandwich (DAC 2026), section 6 and figure 3"
	arcLightPaper = "ArcLight (ACL 2026 demonstrations), table 1 and section 4"
	smePilotPaper = "SMEPilot, section 3.1 and the table of platforms"
	agentXPUPaper = "Agent.xpu, the testbed of its evaluation"
	restAssumed   = "assumed: true for cache and memory sizes, PU numbering, and every figure without a source"
)

// assumedFigure returns a figure without a source: the theoretical value from clock, ports and
// channels, times a typical efficiency.
func assumedFigure(v float64, unit string) Figure {
	return Figure{Median: v, Unit: unit, Assumed: true}
}

func quotedFigure(v float64, unit, source string) Figure {
	return Figure{Median: v, Unit: unit, Source: source}
}

// vector returns the assumed float32 peaks of one core and of all cores; core is in FLOP/s.
func vector(isa string, core float64, cores int) []Ceiling {
	return []Ceiling{
		{Kind: Compute, ISA: isa, Type: "f32", PUs: 1, Figure: assumedFigure(core, "FLOP/s")},
		{Kind: Compute, ISA: isa, Type: "f32", PUs: cores, Figure: assumedFigure(core*float64(cores), "FLOP/s")},
	}
}

// integer returns the assumed int8 peaks of one core and of all cores; core is in OP/s.
func integer(isa string, core float64, cores int) []Ceiling {
	return []Ceiling{
		{Kind: Compute, ISA: isa, Type: "int8", PUs: 1, Figure: assumedFigure(core, "OP/s")},
		{Kind: Compute, ISA: isa, Type: "int8", PUs: cores, Figure: assumedFigure(core*float64(cores), "OP/s")},
	}
}

// memoryRead returns the read bandwidth of one core, which is assumed, and of all cores.
func memoryRead(core float64, cores int, all Figure) []Ceiling {
	return []Ceiling{
		{Kind: Bandwidth, Level: "memory", PUs: 1, Figure: assumedFigure(core, "B/s")},
		{Kind: Bandwidth, Level: "memory", PUs: cores, Figure: all},
	}
}

func ceilings(lists ...[]Ceiling) []Ceiling {
	var out []Ceiling
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

var builtins = map[string]*builtin{
	"kunpeng920": {
		arch: "aarch64", model: "Kunpeng-920", isa: []string{"dotprod", "neon"},
		packages: 4, nodes: 2, memory: 32 * gib, l3: 24 * mib, number: blockwise,
		parts:    []part{{cores: 24, smt: 1, l2: 512 * kib, l2Cores: 1}},
		ceilings: ceilings(vector("neon", 41.6e9, 192), memoryRead(10e9, 192, assumedFigure(408e9, "B/s"))),
		notes: []string{
			"source: " + sandwichPaper + ": 4 CPUs, 8 NUMA nodes, 192 cores; the clusters of 4 cores it " +
				"describes are latent and not listed here",
			restAssumed,
		},
	},
	"kunpeng920-4n": {
		arch: "aarch64", model: "Kunpeng-920", isa: []string{"dotprod", "neon"},
		packages: 4, nodes: 1, memory: 64 * gib, l3: 48 * mib, number: blockwise,
		parts: []part{{cores: 48, smt: 1, l2: 512 * kib, l2Cores: 1}},
		ceilings: ceilings(vector("neon", 41.6e9, 192), memoryRead(10e9, 192, quotedFigure(409e9, "B/s",
			arcLightPaper+": the four local entries"))),
		matrices: []Matrix{{
			Name: "node-bandwidth", Items: []int{0, 1, 2, 3}, Unit: "B/s", Source: arcLightPaper,
			Rows: []MatrixRow{{102e9, 26e9, 24e9, 23e9}, {26e9, 103e9, 23e9, 22e9}, {24e9, 23e9, 103e9, 26e9},
				{23e9, 22e9, 26e9, 101e9}},
		}},
		notes: []string{"source: " + arcLightPaper + ": 4 NUMA nodes of 48 cores with 6 channels of DDR4 each",
			restAssumed},
	},
	"kunpeng920-72f8": {
		arch: "aarch64", model: "KunPeng 920 72F8", isa: []string{"dotprod", "i8mm", "neon", "sme"},
		packages: 1, nodes: 2, memory: 128 * gib, l3: 56 * mib, number: blockwise,
		parts: []part{{cores: 40, smt: 1, l2: mib, l2Cores: 1}},
		ceilings: ceilings(vector("neon", 46e9, 80), memoryRead(15e9, 80, assumedFigure(250e9, "B/s")),
			[]Ceiling{{Kind: Compute, Device: "sme", Type: "f16", PUs: 1, Figure: assumedFigure(700e9, "FLOP/s")}}),
		notes: []string{"source: " + smePilotPaper + ": one SME unit per core, 10 workers used; the number of " +
			"cores is assumed", restAssumed},
	},
	"epyc7h12": {
		arch: "x86_64", model: "AMD EPYC 7H12 64-Core Processor", isa: []string{"avx2"},
		packages: 2, nodes: 1, memory: 256 * gib, number: blockwise,
		parts:    []part{{cores: 64, smt: 2, l2: 512 * kib, l2Cores: 1, l3: 16 * mib, l3Cores: 4}},
		ceilings: ceilings(vector("avx2", 83e9, 128), memoryRead(20e9, 128, assumedFigure(327e9, "B/s"))),
		notes:    []string{"source: " + sandwichPaper + ": 2 NUMA nodes, 4 cores share an L3 slice", restAssumed},
	},
	"xeon6151": {
		arch: "x86_64", model: "Intel(R) Xeon(R) Gold 6151 CPU @ 3.00GHz", isa: []string{"avx2", "avx512"},
		packages: 2, nodes: 1, memory: 96 * gib, l3: 25344 * kib, number: blockwise,
		parts: []part{{cores: 18, smt: 2, l2: mib, l2Cores: 1}},
		ceilings: ceilings(vector("avx512", 154e9, 36), vector("avx2", 83e9, 36), memoryRead(13e9, 36,
			assumedFigure(205e9, "B/s"))),
		notes: []string{"source: " + sandwichPaper + ": 2 NUMA nodes, AVX-512", restAssumed},
	},
	"xeon6230": {
		arch: "x86_64", model: "Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz", isa: []string{"avx2", "avx512",
			"avx512_vnni"},
		packages: 2, nodes: 1, memory: 96 * gib, l3: 28160 * kib, number: interleaved,
		parts: []part{{cores: 20, smt: 2, l2: mib, l2Cores: 1}},
		ceilings: ceilings(vector("avx512", 115e9, 40), integer("avx512", 460e9, 40), vector("avx2", 64e9, 40),
			memoryRead(13e9, 40, assumedFigure(225e9, "B/s"))),
		notes: []string{"source: " + sandwichPaper + ": 2 NUMA nodes, AVX-512", restAssumed},
	},
	"xeon8272cl": {
		arch: "x86_64", model: "Intel(R) Xeon(R) Platinum 8272CL CPU @ 2.60GHz", isa: []string{"avx2", "avx512",
			"avx512_vnni"},
		packages: 2, nodes: 1, memory: 192 * gib, l3: 36608 * kib, number: blockwise,
		parts: []part{{cores: 26, smt: 2, l2: mib, l2Cores: 1}},
		ceilings: ceilings(vector("avx512", 141e9, 52), integer("avx512", 563e9, 52), vector("avx2", 80e9, 52),
			memoryRead(13e9, 52, assumedFigure(225e9, "B/s"))),
		notes: []string{"source: " + sandwichPaper + ": 2 NUMA nodes", restAssumed},
	},
	"m4pro": {
		arch: "aarch64", model: "Apple M4 Pro", isa: []string{"dotprod", "i8mm", "neon", "sme"},
		packages: 1, nodes: 1, memory: 48 * gib, number: blockwise,
		parts: []part{
			{cores: 10, smt: 1, l2: 16 * mib, l2Cores: 5, coreType: "performance"},
			{cores: 4, smt: 1, l2: 4 * mib, l2Cores: 4, coreType: "efficiency"},
		},
		ceilings: ceilings(vector("neon", 115e9, 8), memoryRead(100e9, 8, quotedFigure(247e9, "B/s", smePilotPaper)),
			[]Ceiling{
				{Kind: Compute, ISA: "neon", Type: "f16", PUs: 8, Figure: quotedFigure(1.85e12, "FLOP/s",
					smePilotPaper)},
				{Kind: Compute, Device: "sme", Type: "f16", PUs: 2, Figure: quotedFigure(2.92e12, "FLOP/s",
					smePilotPaper)},
				{Kind: Compute, Device: "sme+cpu", Type: "f16", PUs: 10, Figure: quotedFigure(4.27e12, "FLOP/s",
					smePilotPaper)},
				{Kind: Bandwidth, Device: "sme", Level: "memory", PUs: 2, Figure: quotedFigure(224e9, "B/s",
					smePilotPaper)},
			}),
		notes: []string{"source: " + smePilotPaper + ": 10 performance and 4 efficiency cores, one SME unit for " +
			"5 performance cores; that its figure 3 shows this machine is inferred", restAssumed},
	},
	"dimensity9500": {
		arch: "aarch64", model: "MediaTek Dimensity 9500", isa: []string{"dotprod", "i8mm", "neon", "sme"},
		packages: 1, nodes: 1, memory: 16 * gib, l3: 16 * mib, number: blockwise,
		parts: []part{
			{cores: 1, smt: 1, l2: 2 * mib, l2Cores: 1, coreType: "C1-Ultra"},
			{cores: 3, smt: 1, l2: mib, l2Cores: 1, coreType: "C1-Premium"},
			{cores: 4, smt: 1, l2: 512 * kib, l2Cores: 1, coreType: "C1-Pro"},
		},
		ceilings: ceilings(
			[]Ceiling{
				{Kind: Compute, ISA: "neon", Type: "f32", PUs: 1, Figure: assumedFigure(130e9, "FLOP/s")},
				{Kind: Compute, ISA: "neon", Type: "f32", PUs: 8, Figure: assumedFigure(560e9, "FLOP/s")},
				{Kind: Compute, Device: "sme", Type: "f16", PUs: 1, Figure: assumedFigure(1.5e12, "FLOP/s")},
			}, memoryRead(40e9, 8, assumedFigure(68e9, "B/s"))),
		notes: []string{"source: " + smePilotPaper + ": 1 C1-Ultra, 3 C1-Premium and 4 C1-Pro cores, one SME " +
			"unit", restAssumed},
	},
	"core-ultra-125h": {
		arch: "x86_64", model: "Intel(R) Core(TM) Ultra 5 125H", isa: []string{"avx2", "avx_vnni"},
		packages: 1, nodes: 1, memory: 64 * gib, l3: 18 * mib, number: ultraNumbers,
		parts: []part{
			{cores: 4, smt: 2, l2: 2 * mib, l2Cores: 1, coreType: "performance"},
			{cores: 8, smt: 1, l2: 2 * mib, l2Cores: 4, coreType: "efficiency"},
			{cores: 2, smt: 1, l2: 2 * mib, l2Cores: 2, outside: true, coreType: "low-power"},
		},
		ceilings: ceilings(
			[]Ceiling{
				{Kind: Compute, ISA: "avx2", Type: "f32", PUs: 1, Figure: assumedFigure(130e9, "FLOP/s")},
				{Kind: Compute, ISA: "avx2", Type: "f32", PUs: 14, Figure: assumedFigure(750e9, "FLOP/s")},
				{Kind: Compute, ISA: "avx2", Type: "int8", PUs: 14, Figure: assumedFigure(3e12, "OP/s")},
				{Kind: Compute, Device: "gpu", Type: "f16", PUs: 1, Figure: assumedFigure(2.37e12, "FLOP/s")},
				{Kind: Compute, Device: "npu", Type: "f16", PUs: 1, Figure: assumedFigure(2.37e12, "FLOP/s")},
				{Kind: Compute, Device: "npu", Type: "int8", PUs: 1, Figure: assumedFigure(11e12, "OP/s")},
			}, memoryRead(30e9, 14, assumedFigure(72e9, "B/s"))),
		notes: []string{"source: " + agentXPUPaper + ": Intel Core Ultra 5 125H with 64 GB of DDR5; its core " +
			"counts are the vendor's; kernels of 256 rows of an 8B model take up to 38 ms on GPU and NPU (section " +
			"4.4), which for its feed-forward part is 2.37 TFLOP/s", restAssumed},
	},
}

// ultraNumbers gives the threads of the four performance cores adjacent numbers and the
// single-threaded cores the numbers after them.
func ultraNumbers(_, _, _, c, t int) int {
	const performance = 4
	if c < performance {
		return 2*c + t
	}
	return performance + c
}
