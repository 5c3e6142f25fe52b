package kernels

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen/weights"
	"sandwich/microkernel/qtype"
	"sandwich/runtime/device"
)

// BenchmarkProduct measures integer products on each device of this host: 1e12 multiplications and
// additions per second.
func BenchmarkProduct(b *testing.B) {
	shapes := [][3]int{{1, 4096, 4096}, {16, 4096, 4096}, {512, 2048, 2048}, {2048, 4096, 4096}, {4096, 14336, 4096}}
	for id, d := range opened {
		for _, typ := range []qtype.Type{qtype.Q8_0, qtype.Q4_K, qtype.Q6_K} {
			for _, path := range []microkernel.Compute{microkernel.ComputeInt8, microkernel.ComputeInt8Superblock,
				microkernel.ComputeInt8K} {
				if weights.Supports(typ, path) != nil {
					continue
				}
				for _, s := range shapes {
					g := GEMM{Weight: typ, Path: path}
					b.Run(fmt.Sprintf("%s/%s/%s/%dx%dx%d", id, typ, path, s[0], s[1], s[2]), func(b *testing.B) {
						benchmarkProduct(b, d, g.For(s[0], d.Info().MatrixUnit), g, s)
					})
				}
			}
		}
	}
}

// benchmarkProduct runs a product of shape M, N, K with random operands.
func benchmarkProduct(b *testing.B, d device.Device, product Product, g GEMM, shape [3]int) {
	const launches = 20 // per submission
	m, n, k := shape[0], shape[1], shape[2]
	kernel, err := product.Kernel()
	if err != nil {
		b.Fatal(err)
	}
	program, err := d.Compile(kernel)
	if err != nil {
		b.Fatal(err)
	}
	layout := microkernel.Layout{Type: g.Weight, N: n, K: k}
	row := g.Path.ActRowBytes(k)
	launch := device.Launch{Program: program, Groups: product.Grid(m, n),
		Push: pushed(m, n, k, row/4, layout.PanelStride()/4, n)}
	for _, bytes := range []int{m * row, int(layout.Bytes()), 4 * m * n} {
		buffer, err := d.Alloc(uint64(bytes), device.DeviceLocal)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = buffer.Free() })
		if err := d.Write(buffer, 0, moderateBytes(bytes)); err != nil {
			b.Fatal(err)
		}
		launch.Buffers = append(launch.Buffers, device.Slice{Buffer: buffer})
	}
	steps := make([]device.Step, launches)
	for i := range steps {
		steps[i] = launch
	}
	commands, err := d.Record(steps...)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		ticket, err := d.Submit(commands)
		if err == nil {
			err = d.Wait(b.Context(), ticket)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	seconds := b.Elapsed().Seconds() / float64(b.N*launches)
	b.ReportMetric(2*float64(m)*float64(n)*float64(k)/seconds/1e12, "TOP/s")
	b.ReportMetric(float64(layout.Bytes())/seconds/1e9, "GB/s")
	if err := commands.Free(); err != nil {
		b.Error(err)
	}
	if err := program.Free(); err != nil {
		b.Error(err)
	}
}

// moderateBytes returns random bytes that give finite numbers in every layout.
func moderateBytes(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(r.Uint32()) & 0x3f
	}
	return data
}
