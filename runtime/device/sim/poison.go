package sim

import (
	"bytes"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/devgen/interp"
	"sandwich/runtime/device"
)

// poison fills the buffers that the last launch writes with NaN, and repeats the copies after it.
// Of Shared buffers, which have data of the cores, it changes only the words that the launch
// writes.
func poison(steps []device.Step) error {
	for i := len(steps) - 1; i >= 0; i-- {
		l, ok := steps[i].(device.Launch)
		if !ok {
			continue
		}
		if err := poisonLaunch(&l); err != nil {
			return err
		}
		for _, s := range steps[i+1:] {
			if c, ok := s.(device.Copy); ok {
				run(c)
			}
		}
		return nil
	}
	return nil
}

func poisonLaunch(l *device.Launch) error {
	k := l.Program.Kernel()
	inverted := make([][]byte, len(l.Buffers))
	for i, b := range l.Buffers {
		inverted[i] = bytes.Clone(memory(b))
		if k.Bindings[i].Access == devgen.Read || b.Buffer.(*buffer).shared == nil {
			continue
		}
		for at := range inverted[i] {
			inverted[i][at] ^= 0xFF
		}
	}
	after := make([][]byte, len(inverted))
	for i := range inverted {
		after[i] = bytes.Clone(inverted[i])
	}
	if err := interp.Run(k, l.Groups, after, l.Push); err != nil {
		return err
	}
	for i, b := range l.Buffers {
		if k.Bindings[i].Access == devgen.Read {
			continue
		}
		all := b.Buffer.(*buffer).shared == nil
		for at, data := 0, memory(b); at < len(data); at++ {
			if word := at &^ 3; all || !bytes.Equal(after[i][word:word+4], inverted[i][word:word+4]) {
				data[at] = 0xFF
			}
		}
	}
	return nil
}

// memory returns the memory of a slice.
func memory(s device.Slice) []byte { return s.Buffer.(*buffer).data[s.Offset:] }
