package nodelabel

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandwich/profiles"
	"sandwich/topotree"
	"sandwich/topotree/hwloc"
)

// Valid labels: Kubernetes' documentation "Labels and Selectors"; operators of Slurm constraints,
// from sbatch(1), are excluded.
var (
	kubernetesLabel = regexp.MustCompile(`^sandwich\.dev/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?=` +
		`[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	slurmFeature = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
)

// host returns a host with a CPU model and features, of which a process may use one PU.
func host(t *testing.T, model string, pu int, isa ...string) *profiles.Profile {
	t.Helper()
	m, err := hwloc.ReadSynthetic("pack:2 numa:1 core:4 pu:2")
	if err != nil {
		t.Fatal(err)
	}
	d := m.Describe()
	d.Arch, d.Model, d.Allowed = "x86_64", model, topotree.NewCPUSet(pu)
	if m, err = d.Machine(); err != nil {
		t.Fatal(err)
	}
	return profiles.New(m, profiles.Identity{ISA: isa})
}

// TestValid checks characters and length with ordinary and hostile names.
func TestValid(t *testing.T) {
	for _, model := range []string{"AMD EPYC 7H12 64-Core Processor", "Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz", "",
		"--__..", "模型", strings.Repeat("x-", 200), strings.Repeat("é", 70) + "z", "a,b&c|d*[e]=f\n/g", "-a-"} {
		p := host(t, model, 0, "avx512", "AVX-512 VNNI", "", strings.Repeat("f", 100), "é")
		if len(Kubernetes(p)) < 5 || len(Slurm(p)) < 7 {
			t.Errorf("%q: %v, %v", model, Kubernetes(p), Slurm(p))
		}
		for _, l := range Kubernetes(p) {
			if !kubernetesLabel.MatchString(l) {
				t.Errorf("%q: %q is not a label", model, l)
			}
		}
		for _, f := range Slurm(p) {
			if !slurmFeature.MatchString(f) {
				t.Errorf("%q: %q is not a feature", model, f)
			}
		}
	}
}

// TestContent checks some labels, and which of them depend on the CPUs of the process.
func TestContent(t *testing.T) {
	p, q := host(t, "AMD EPYC 7H12 64-Core", 0, "avx2"), host(t, "AMD EPYC 7H12 64-Core", 5, "avx2")
	for _, want := range []string{"sandwich.dev/arch=amd64", "sandwich.dev/cpu=amd-epyc-7h12-64-core",
		"sandwich.dev/pus=16",
		"sandwich.dev/nodes=2", "sandwich.dev/isa-avx2=true",
		"sandwich.dev/topology=" + p.Machine.Tree.Digest().String()} {
		if !slices.Contains(Kubernetes(p), want) {
			t.Errorf("%s is missing in %v", want, Kubernetes(p))
		}
	}
	for _, want := range []string{"sandwich_cpu_amd_epyc_7h12_64_core", "sandwich_isa_avx2", "sandwich_pus_16"} {
		if !slices.Contains(Slurm(p), want) {
			t.Errorf("%s is missing in %v", want, Slurm(p))
		}
	}
	for i, l := range Kubernetes(p) {
		if same := l == Kubernetes(q)[i]; same == strings.HasPrefix(l, "sandwich.dev/host=") {
			t.Errorf("on another PU %s is %s", l, Kubernetes(q)[i])
		}
	}
}
