package spirv

// id is a result of an instruction, a type or a constant.
type id uint32

// Instructions, as numbered by the SPIR-V specification.
const (
	opExtInstImport     = 11
	opExtInst           = 12
	opMemoryModel       = 14
	opEntryPoint        = 15
	opExecutionMode     = 16
	opCapability        = 17
	opTypeVoid          = 19
	opTypeBool          = 20
	opTypeInt           = 21
	opTypeFloat         = 22
	opTypeVector        = 23
	opTypeArray         = 28
	opTypeRuntimeArray  = 29
	opTypeStruct        = 30
	opTypePointer       = 32
	opTypeFunction      = 33
	opConstantTrue      = 41
	opConstantFalse     = 42
	opConstant          = 43
	opConstantNull      = 46
	opFunction          = 54
	opFunctionEnd       = 56
	opVariable          = 59
	opLoad              = 61
	opStore             = 62
	opAccessChain       = 65
	opDecorate          = 71
	opMemberDecorate    = 72
	opCompositeBuild    = 80
	opCompositeExtract  = 81
	opConvertSToF       = 111
	opFConvert          = 115
	opBitcast           = 124
	opIAdd              = 128
	opFAdd              = 129
	opISub              = 130
	opFSub              = 131
	opIMul              = 132
	opFMul              = 133
	opUDiv              = 134
	opFDiv              = 136
	opUMod              = 137
	opLogicalEqual      = 164
	opLogicalOr         = 166
	opLogicalAnd        = 167
	opLogicalNot        = 168
	opSelect            = 169
	opIEqual            = 170
	opULessThan         = 176
	opSLessThan         = 177
	opFOrdNotEqual      = 182
	opFUnordNotEqual    = 183
	opFOrdLessThan      = 184
	opFOrdGreaterThan   = 186
	opShiftRightLogical = 194
	opShiftRightArith   = 195
	opShiftLeft         = 196
	opBitwiseOr         = 197
	opBitwiseXor        = 198
	opBitwiseAnd        = 199
	opControlBarrier    = 224
	opLoopMerge         = 246
	opSelectionMerge    = 247
	opLabel             = 248
	opBranch            = 249
	opBranchConditional = 250
	opReturn            = 253
	opSDot              = 4450
)

// Enumerants.
const (
	classInput    = 1
	classShared   = 4
	classFunction = 7
	classPush     = 9
	classBuffer   = 5349

	decorationBlock         = 2
	decorationArrayStride   = 6
	decorationBuiltIn       = 11
	decorationOffset        = 35
	decorationNoContraction = 42

	capabilityShader          = 1
	capabilityFloat64         = 10
	capabilityBufferAddresses = 5347
	capabilityDenormPreserve  = 4464
	capabilityDotPacked       = 6018
	capabilityDot             = 6019

	modeLocalSize      = 17
	modeDenormPreserve = 4459

	builtInWorkgroup  = 26
	builtInLocalIndex = 29

	alignedAccess = 2
	glslSqrt      = 31
	glslFMA       = 50
)

// module collects the sections of a module in the order of the specification.
type module struct {
	next                             id
	capabilities, modes, decorations []uint32
	types, variables, code           []uint32
	known                            map[[4]uint32]id // types and constants
	capable                          map[uint32]bool
	glsl                             id
	main                             id
	inter                            []id // variables of the interface
	void, boolean, u32, f32, vec3u   id
}

func newModule() module {
	m := module{next: 1, known: map[[4]uint32]id{}, capable: map[uint32]bool{}}
	m.main = m.new()
	m.capability(capabilityShader)
	m.capability(capabilityBufferAddresses)
	m.void = m.typ(opTypeVoid)
	m.boolean = m.typ(opTypeBool)
	m.u32 = m.typ(opTypeInt, 32, 0)
	m.f32 = m.typ(opTypeFloat, 32)
	m.vec3u = m.typ(opTypeVector, uint32(m.u32), 3)
	return m
}

func (m *module) new() id {
	m.next++
	return m.next - 1
}

// instruction returns the words of an instruction.
func instruction(op uint32, operands ...uint32) []uint32 {
	return append([]uint32{uint32(len(operands)+1)<<16 | op}, operands...)
}

// text returns a string literal.
func text(s string) []uint32 {
	words := make([]uint32, len(s)/4+1)
	for i := range len(s) {
		words[i/4] |= uint32(s[i]) << (8 * (i % 4))
	}
	return words
}

func (m *module) capability(c uint32) {
	if !m.capable[c] {
		m.capable[c] = true
		m.capabilities = append(m.capabilities, instruction(opCapability, c)...)
	}
}

func (m *module) decorate(to id, what ...uint32) {
	m.decorations = append(m.decorations, instruction(opDecorate, append([]uint32{uint32(to)}, what...)...)...)
}

func (m *module) decorateMember(of id, member int, what ...uint32) {
	m.decorations = append(m.decorations, instruction(opMemberDecorate,
		append([]uint32{uint32(of), uint32(member)}, what...)...)...)
}

// typ returns a type, declared once.
func (m *module) typ(op uint32, operands ...uint32) id {
	key := [4]uint32{op}
	copy(key[1:], operands)
	if t, ok := m.known[key]; ok {
		return t
	}
	t := m.newType(op, operands...)
	m.known[key] = t
	return t
}

// newType declares a type that differs from all others.
func (m *module) newType(op uint32, operands ...uint32) id {
	t := m.new()
	m.types = append(m.types, instruction(op, append([]uint32{uint32(t)}, operands...)...)...)
	return t
}

func (m *module) pointer(class uint32, to id) id { return m.typ(opTypePointer, class, uint32(to)) }

// constant returns a constant of a 32-bit type.
func (m *module) constant(t id, bits uint32) id {
	key := [4]uint32{opConstant, uint32(t), bits}
	if c, ok := m.known[key]; ok {
		return c
	}
	c := m.new()
	m.known[key] = c
	if t == m.boolean {
		op := uint32(opConstantFalse)
		if bits != 0 {
			op = opConstantTrue
		}
		m.types = append(m.types, instruction(op, uint32(t), uint32(c))...)
		return c
	}
	m.types = append(m.types, instruction(opConstant, uint32(t), uint32(c), bits)...)
	return c
}

func (m *module) u(x uint32) id { return m.constant(m.u32, x) }

// double returns the type float64.
func (m *module) double() id {
	m.capability(capabilityFloat64)
	return m.typ(opTypeFloat, 64)
}

// null returns the zero of a type.
func (m *module) null(t id) id {
	key := [4]uint32{opConstantNull, uint32(t)}
	if c, ok := m.known[key]; ok {
		return c
	}
	c := m.new()
	m.known[key] = c
	m.types = append(m.types, instruction(opConstantNull, uint32(t), uint32(c))...)
	return c
}

// variable declares a variable outside the function.
func (m *module) variable(class uint32, t id) id {
	v := m.new()
	m.types = append(m.types, instruction(opVariable, uint32(m.pointer(class, t)), uint32(v), class)...)
	m.inter = append(m.inter, v)
	return v
}

// local declares a variable of the function.
func (m *module) local(t id) id {
	v := m.new()
	m.variables = append(m.variables, instruction(opVariable, uint32(m.pointer(classFunction, t)), uint32(v),
		classFunction)...)
	return v
}

// op appends an instruction with a result.
func (m *module) op(op uint32, t id, operands ...id) id {
	r := m.new()
	m.opTo(r, op, t, operands...)
	return r
}

func (m *module) opTo(r id, op uint32, t id, operands ...id) {
	words := []uint32{uint32(t), uint32(r)}
	for _, o := range operands {
		words = append(words, uint32(o))
	}
	m.code = append(m.code, instruction(op, words...)...)
}

// do appends an instruction without a result.
func (m *module) do(op uint32, operands ...id) {
	words := make([]uint32, len(operands))
	for i, o := range operands {
		words[i] = uint32(o)
	}
	m.code = append(m.code, instruction(op, words...)...)
}

// extended appends an instruction of GLSL.std.450.
func (m *module) extended(r id, which uint32, t id, operands ...id) {
	if m.glsl == 0 {
		m.glsl = m.new()
	}
	m.opTo(r, opExtInst, t, append([]id{m.glsl, id(which)}, operands...)...)
}

// assemble returns the module for a workgroup size.
func (m *module) assemble(size int) []uint32 {
	function := m.typ(opTypeFunction, uint32(m.void))
	label := m.new()
	entry := append([]uint32{5, uint32(m.main)}, text("main")...)
	for _, v := range m.inter {
		entry = append(entry, uint32(v))
	}
	words := []uint32{0x07230203, 0x00010600, 0, uint32(m.next), 0}
	add := func(parts ...[]uint32) {
		for _, p := range parts {
			words = append(words, p...)
		}
	}
	add(m.capabilities)
	if m.glsl != 0 {
		add(instruction(opExtInstImport, append([]uint32{uint32(m.glsl)}, text("GLSL.std.450")...)...))
	}
	const physical64, glsl450 = 5348, 1
	add(instruction(opMemoryModel, physical64, glsl450), instruction(opEntryPoint, entry...))
	add(instruction(opExecutionMode, uint32(m.main), modeLocalSize, uint32(size), 1, 1), m.modes)
	add(m.decorations, m.types)
	add(instruction(opFunction, uint32(m.void), uint32(m.main), 0, uint32(function)))
	add(instruction(opLabel, uint32(label)), m.variables, m.code, instruction(opReturn), instruction(opFunctionEnd))
	return words
}
