//! An assembler for small SPIR-V modules: kernels that compute with 32-bit numbers.
//!
//! The numbers of instructions, types and modes are those of the SPIR-V specification, section 3.

/// What a body works with.
#[derive(Clone, Copy)]
pub(crate) struct Types {
    pub(crate) void: u32,
    pub(crate) uint: u32,
    pub(crate) long: u32,
    /// A pointer to numbers in memory of the device.
    pub(crate) global: u32,
    /// A pointer to numbers in local memory.
    pub(crate) local: u32,
}

/// A module that is being written.
pub(crate) struct Assembler {
    next: u32,
    entries: Vec<u32>,
    modes: Vec<u32>,
    annotations: Vec<u32>,
    declarations: Vec<u32>,
    functions: Vec<u32>,
    pub(crate) types: Types,
    global_number: u32,
    local_number: u32,
    vector: u32,
    capabilities: Vec<u32>,
    extensions: Vec<u32>,
    memory_model: [u32; 2],
    last_parameter: u32,
    last_function_type: u32,
}

fn put(to: &mut Vec<u32>, code: u32, operands: &[u32]) {
    to.push((operands.len() as u32 + 1) << 16 | code);
    to.extend(operands);
}

fn text(text: &str) -> Vec<u32> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize((bytes.len() / 4 + 1) * 4, 0);
    bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

impl Assembler {
    /// An empty module.
    pub(crate) fn new() -> Self {
        Self::with(true)
    }

    /// An empty module whose kernels know nothing of groups: without local memory and numbers in a group.
    pub(crate) fn without_groups() -> Self {
        Self::with(false)
    }

    fn with(groups: bool) -> Self {
        let types = Types { void: 1, uint: 2, long: 3, global: 4, local: 5 };
        let mut made = Self {
            next: 6,
            entries: Vec::new(),
            modes: Vec::new(),
            annotations: Vec::new(),
            declarations: Vec::new(),
            functions: Vec::new(),
            types,
            global_number: 0,
            local_number: 0,
            vector: 0,
            // Addresses, Linkage, Kernel, Int64, Float64, Int8.
            capabilities: vec![4, 5, 6, 11, 10, 39],
            extensions: Vec::new(),
            memory_model: [2, 2],
            last_parameter: 0,
            last_function_type: 0,
        };
        made.declare(19, &[types.void]);
        made.declare(21, &[types.uint, 32, 0]);
        made.declare(21, &[types.long, 64, 0]);
        made.declare(32, &[types.global, 5, types.uint]);
        if groups {
            made.declare(32, &[types.local, 4, types.uint]);
        }
        made.vector = made.id();
        made.declare(23, &[made.vector, types.long, 3]);
        let pointer = made.id();
        made.declare(32, &[pointer, 1, made.vector]);
        made.global_number = made.built_in(28, "__spirv_BuiltInGlobalInvocationId", pointer);
        if groups {
            made.local_number = made.built_in(27, "__spirv_BuiltInLocalInvocationId", pointer);
        }
        made
    }

    /// A new id.
    pub(crate) fn id(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// An instruction outside functions: a type, a constant or a variable.
    pub(crate) fn declare(&mut self, code: u32, operands: &[u32]) {
        put(&mut self.declarations, code, operands);
    }

    /// A decoration.
    pub(crate) fn decorate(&mut self, operands: &[u32]) {
        put(&mut self.annotations, 71, operands);
    }

    /// An instruction of a function.
    pub(crate) fn does(&mut self, code: u32, operands: &[u32]) {
        put(&mut self.functions, code, operands);
    }

    /// An instruction of a function with a result.
    pub(crate) fn gives(&mut self, code: u32, kind: u32, operands: &[u32]) -> u32 {
        let id = self.id();
        let operands: Vec<u32> = [kind, id].iter().chain(operands).copied().collect();
        self.does(code, &operands);
        id
    }

    fn built_in(&mut self, number: u32, name: &str, pointer: u32) -> u32 {
        let id = self.id();
        self.decorate(&[id, 11, number]);
        self.linkage(id, name, 1);
        self.declare(59, &[pointer, id, 1]);
        id
    }

    /// Gives a function or variable a name for other modules: 0 exports it, 1 imports it.
    pub(crate) fn linkage(&mut self, id: u32, name: &str, kind: u32) {
        let operands: Vec<u32> = [id, 41].into_iter().chain(text(name)).chain([kind]).collect();
        self.decorate(&operands);
    }

    /// A 32-bit number.
    pub(crate) fn number(&mut self, value: u32) -> u32 {
        let id = self.id();
        self.declare(43, &[self.types.uint, id, value]);
        id
    }

    /// A specialisation constant with its default.
    pub(crate) fn constant(&mut self, number: u32, value: u32) -> u32 {
        let id = self.id();
        self.decorate(&[id, 1, number]);
        self.declare(50, &[self.types.uint, id, value]);
        id
    }

    /// A function with parameters of these types. Returns its id; `body` gets the parameters.
    pub(crate) fn function(&mut self, result: u32, parameters: &[u32], body: impl FnOnce(&mut Self, &[u32])) -> u32 {
        let kind = self.id();
        let id = self.id();
        let operands: Vec<u32> = [kind, result].iter().chain(parameters).copied().collect();
        self.declare(33, &operands);
        self.last_function_type = kind;
        self.does(54, &[result, id, 0, kind]);
        let given: Vec<u32> = parameters.iter().map(|kind| self.gives(55, *kind, &[])).collect();
        self.last_parameter = given.last().copied().unwrap_or_default();
        body(self, &given);
        self.does(56, &[]);
        id
    }

    /// A kernel. `body` gets the parameters, and the number of the work item among all.
    pub(crate) fn kernel(&mut self, name: &str, parameters: &[u32], body: impl FnOnce(&mut Self, &[u32], u32)) -> u32 {
        let id = self.function(self.types.void, parameters, |asm, given| {
            asm.label();
            let item = asm.item(asm.global_number);
            body(asm, given, item);
            asm.does(253, &[]);
        });
        let variables = [self.global_number, self.local_number].into_iter().filter(|id| *id != 0);
        let names: Vec<u32> = [6, id].into_iter().chain(text(name)).chain(variables).collect();
        put(&mut self.entries, 15, &names);
        id
    }

    /// The last parameter of the function that was written last.
    pub(crate) fn last_parameter(&self) -> u32 {
        self.last_parameter
    }

    /// A constant pointer to the last function, and the type of that pointer (SPV_INTEL_function_pointers).
    pub(crate) fn pointer_to(&mut self, function: u32) -> (u32, u32) {
        self.capability(5603); // FunctionPointersINTEL
        self.capability(5604); // IndirectReferencesINTEL
        self.extension("SPV_INTEL_function_pointers");
        self.decorate(&[function, 5602]); // ReferencedIndirectlyINTEL
        let kind = self.id();
        let id = self.id();
        self.declare(32, &[kind, 5605, self.last_function_type]); // CodeSectionINTEL
        self.declare(5600, &[kind, id, function]); // OpConstantFunctionPointerINTEL
        (kind, id)
    }

    /// Gives the module the memory model of graphics, which is not OpenCL's.
    pub(crate) fn for_graphics(&mut self) {
        self.memory_model = [0, 1];
    }

    /// One more extension.
    pub(crate) fn extension(&mut self, name: &str) {
        put(&mut self.extensions, 10, &text(name));
    }

    /// One more set of instructions.
    pub(crate) fn import(&mut self, name: &str) {
        let operands: Vec<u32> = [self.id()].into_iter().chain(text(name)).collect();
        put(&mut self.extensions, 11, &operands);
    }

    /// One more capability.
    pub(crate) fn capability(&mut self, number: u32) {
        self.capabilities.push(number);
    }

    /// An execution mode of a kernel.
    pub(crate) fn mode(&mut self, kernel: u32, mode: &[u32]) {
        let operands: Vec<u32> = [kernel].iter().chain(mode).copied().collect();
        put(&mut self.modes, 16, &operands);
    }

    /// The start of a body.
    pub(crate) fn label(&mut self) {
        let id = self.id();
        self.does(248, &[id]);
    }

    fn item(&mut self, variable: u32) -> u32 {
        let all = self.gives(61, self.vector, &[variable, 2, 32]);
        self.gives(81, self.types.long, &[all, 0])
    }

    /// The number of the work item in its group.
    pub(crate) fn local_item(&mut self) -> u32 {
        self.item(self.local_number)
    }

    /// The place of a number in an array of this pointer type.
    pub(crate) fn place(&mut self, kind: u32, array: u32, index: u32) -> u32 {
        self.gives(70, kind, &[array, index])
    }

    /// The number at a place.
    pub(crate) fn load(&mut self, place: u32) -> u32 {
        self.gives(61, self.types.uint, &[place, 2, 4])
    }

    /// Stores a number.
    pub(crate) fn store(&mut self, place: u32, value: u32) {
        self.does(62, &[place, value, 2, 4]);
    }

    /// A sum of 32-bit numbers.
    pub(crate) fn sum(&mut self, left: u32, right: u32) -> u32 {
        self.gives(128, self.types.uint, &[left, right])
    }

    /// The module, as bytes.
    pub(crate) fn finish(self) -> Vec<u8> {
        let mut words = vec![0x0723_0203, 0x0001_0000, 0, self.next, 0];
        for capability in self.capabilities {
            put(&mut words, 17, &[capability]);
        }
        words.extend(self.extensions);
        put(&mut words, 14, &self.memory_model);
        for section in [self.entries, self.modes, self.annotations, self.declarations, self.functions] {
            words.extend(section);
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// `scale(out, in, factor)`: `out[i] = in[i] * factor + 1`.
pub(crate) fn scale(asm: &mut Assembler) {
    let types = asm.types;
    let one = asm.number(1);
    asm.kernel("scale", &[types.global, types.global, types.uint], |asm, given, item| {
        let from = asm.place(types.global, given[1], item);
        let value = asm.load(from);
        let product = asm.gives(132, types.uint, &[value, given[2]]);
        let value = asm.sum(product, one);
        let to = asm.place(types.global, given[0], item);
        asm.store(to, value);
    });
}

/// `number(out)`: `out[i] = i`.
pub(crate) fn number(asm: &mut Assembler) {
    let types = asm.types;
    asm.kernel("number", &[types.global], |asm, given, item| {
        let value = asm.gives(113, types.uint, &[item]);
        let to = asm.place(types.global, given[0], item);
        asm.store(to, value);
    });
}

/// `increment(out)`: `out[i] += 1`.
pub(crate) fn increment(asm: &mut Assembler) {
    let types = asm.types;
    let one = asm.number(1);
    asm.kernel("increment", &[types.global], |asm, given, item| {
        let place = asm.place(types.global, given[0], item);
        let value = asm.load(place);
        let value = asm.sum(value, one);
        asm.store(place, value);
    });
}

/// `empty()`.
pub(crate) fn empty(asm: &mut Assembler) {
    asm.kernel("empty", &[], |_, _, _| {});
}
