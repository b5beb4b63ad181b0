//! The roles of parameters: how one is passed, under which name it is recorded, and when it can be read.
//!
//! Each role wraps the machine word that C passes, so a row's roles are also the signature of its C function. A role
//! never reads memory: the shim does, at the addresses that [`Role::source`] and [`Role::out`] give. Here are the roles that
//! several interfaces have; each interface has its own in a file of its folder.

use crate::handle::fingerprint;
use crate::values::Values;

/// What is missing if an argument is null or zero, by role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Null {
    /// A handle.
    Handle,
    /// A pointer to what is read or written.
    Pointer,
    /// An address of memory.
    Memory,
    /// An out-parameter of a get.
    Answer,
    /// The buffer for the value of a property.
    Value,
    /// The size of that buffer.
    ValueSize,
    /// The out-parameter for the size of the value.
    AnswerSize,
    /// A description.
    Description,
    /// A number of objects.
    Count,
    /// A size in bytes.
    Size,
}

/// What the shim needs to know of a parameter.
pub trait Role: Copy {
    /// The size of the parameter in C, in bytes. A register may be larger.
    const BYTES: usize = size_of::<Self>();

    /// The argument with this value.
    #[must_use]
    fn of_word(word: u64) -> Self;

    /// Adds the argument to the values of the enter.
    fn enter(self, _values: &mut Values) {}

    /// Adds the address of an input that is passed by reference.
    fn source(self, _sources: &mut Sources) {}

    /// Adds the address to which the callee will write.
    fn out(self, _places: &mut OutParams) {}

    /// The argument to pass on, so that the callee writes to a variable of urscope's.
    ///
    /// An adapter may report success and write nothing, which the caller's own variable does not show. The shim copies
    /// what was written to the caller's variable.
    #[must_use]
    fn redirected(self, _to: &OutParams) -> Self {
        self
    }

    /// What is missing if the argument is null or zero.
    fn null(self) -> Option<Null> {
        None
    }

    /// What is missing if the recorded argument is null or zero; `None` where the record does not show it.
    fn null_in(_values: &Values) -> Option<Null> {
        None
    }

    /// Whether a call with this argument is recorded.
    fn watched(self) -> bool {
        true
    }
}

/// The addresses and words of the caller that the shim needs to describe a call, 0 where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Of a structure with `stype`, `pNext` and then `flags` (`ur_exp_event_desc_t`, `ur_physical_mem_properties_t`,
    /// `ur_context_properties_t`).
    pub desc: usize,
    /// Of a `ur_usm_desc_t`.
    pub usm_desc: usize,
    /// An event that the call is about.
    pub event: usize,
    /// Of a list of events that the call is about.
    pub events: usize,
    /// A device that the call names.
    pub device: usize,
    /// Of a list of devices.
    pub devices: usize,
    /// The number of events, devices or command lists in the list.
    pub count: u32,
    /// Of a list of `ze_ipc_mem_handle_t`.
    pub ipc_handles: usize,
    /// Of a Level Zero structure whose extensions may export or import a descriptor.
    pub extended: usize,
    /// Of a `ze_physical_mem_desc_t`.
    pub physical_desc: usize,
    /// Of a `CUmemAllocationProp`.
    pub allocation_properties: usize,
    /// Of a [`HandleBytes`].
    pub handle_bytes: usize,
    /// A descriptor, or of a [`HandleBytes`], as the type says.
    pub imported: usize,
    /// A `CUmemAllocationHandleType`.
    pub handle_type: u32,
    /// A queue or command list that a command goes to.
    pub queue: usize,
    /// The context of a new queue.
    pub queue_context: usize,
    /// Of a `ze_command_queue_desc_t`.
    pub queue_desc: usize,
    /// Of a `ze_command_list_desc_t`.
    pub list_desc: usize,
    /// Of a list of command lists.
    pub lists: usize,
    /// Of a variable that receives a new queue or command list.
    pub new_queue: usize,
    /// Of a list of `ur_exp_kernel_arg_properties_t`.
    pub kernel_args: usize,
    /// The number of its elements.
    pub kernel_arg_count: u32,
    /// A `CUfunction` or `CUkernel` that is launched.
    pub kernel: usize,
    /// Of a list of addresses, one for each of its parameters.
    pub kernel_params: usize,
    /// Of a list of options, which may name a buffer with all of them.
    pub kernel_extra: usize,
    /// Of a `CUDA_MEMCPY2D`.
    pub copy_2d: usize,
    /// Of a `CUDA_MEMCPY3D` or `CUDA_MEMCPY3D_PEER`.
    pub copy_3d: usize,
}

/// The out-parameters of a call: the addresses to which the callee writes, 0 where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutParams {
    /// Of a `void *`, the memory that was allocated or opened.
    pub pointer: usize,
    /// Of a `void *`, the handle data.
    pub data: usize,
    /// Of a `size_t`, the size of the handle data in bytes.
    pub data_size: usize,
    /// Of a `ur_context_handle_t`.
    pub context: usize,
    /// Of a `ur_physical_mem_handle_t`, `ur_event_handle_t` or `ur_usm_pool_handle_t`.
    pub object: usize,
    /// The copy of the handle data that is opened; not an out-parameter of the caller's.
    pub copied_data: usize,
    /// Of a `ur_bool_t` (one byte).
    pub value: usize,
    /// Of a `ze_ipc_mem_handle_t` (64 bytes).
    pub ipc_handle: usize,
    /// Of a handle of 64 bytes that identify it.
    pub handle_bytes: usize,
    /// Of a structure with a `ze_external_memory_export_fd_t` among its extensions.
    pub exporting: usize,
    /// Of a descriptor, or of a handle of 64 bytes, as the type says.
    pub exported: usize,
    /// A `CUmemAllocationHandleType`.
    pub handle_type: u32,
}

impl OutParams {
    /// No out-parameter at all.
    pub const NONE: Self = Self {
        pointer: 0,
        data: 0,
        data_size: 0,
        context: 0,
        object: 0,
        copied_data: 0,
        value: 0,
        ipc_handle: 0,
        handle_bytes: 0,
        exporting: 0,
        exported: 0,
        handle_type: 0,
    };
}

macro_rules! roles {
    ($($(#[$doc:meta])* $name:ident($word:ty) $(bytes $bytes:literal)? $(enter $field:ident)? $(absent $absent:ident)? $(source $source:ident)? $(out $place:ident)? $(null $null:ident $(in $seen:ident)?)? $({ $($own:tt)* })?;)*) => {
        $(
            $(#[$doc])*
            #[repr(transparent)]
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name(pub $word);

            impl Role for $name {
                $(const BYTES: usize = $bytes;)?

                fn of_word(word: u64) -> Self {
                    Self(word as $word)
                }

                $(
                    #[inline]
                    fn enter(self, values: &mut Values) {
                        values.$field = Some(self.0 as u64);
                    }
                )?
                $(
                    // A null out-parameter is recorded as an argument; others are recorded at the exit.
                    #[inline]
                    fn enter(self, values: &mut Values) {
                        if self.0 == 0 {
                            values.$absent = Some(0);
                        }
                    }
                )?
                $(
                    #[inline]
                    fn source(self, sources: &mut Sources) {
                        sources.$source = self.0;
                    }
                )?
                $(
                    #[inline]
                    fn out(self, places: &mut OutParams) {
                        places.$place = self.0;
                    }

                    #[inline]
                    fn redirected(self, to: &OutParams) -> Self {
                        if self.0 == 0 || to.$place == 0 { self } else { Self(to.$place) }
                    }
                )?
                $(
                    #[inline]
                    fn null(self) -> Option<Null> {
                        if self.0 == 0 { Some(Null::$null) } else { None }
                    }

                    $(
                        #[inline]
                        fn null_in(values: &Values) -> Option<Null> {
                            if values.$seen == Some(0) { Some(Null::$null) } else { None }
                        }
                    )?
                )?
                $($($own)*)?
            }
        )*
    };
}

roles! {
    /// A `ur_device_handle_t`.
    Device(usize) enter device source device null Handle in device;
    /// A `ur_context_handle_t`.
    Context(usize) enter context null Handle in context;
    /// A `void *` into memory of the caller.
    Pointer(usize) enter pointer null Memory in pointer;
    /// A `size_t` in bytes.
    Size(usize) enter size null Size in size;
    /// A `size_t`, an offset in bytes.
    Offset(usize) enter offset;
    /// A 32-bit set of flags.
    Flags(u32) enter flags;
    /// A `ur_physical_mem_handle_t`.
    PhysicalMem(usize) enter object null Handle in object;
    /// A `ur_event_handle_t`.
    Event(usize) enter object source event null Handle in object;
    /// The `uint32_t` that counts the objects of a list.
    Count(u32) enter count source count null Count in count;
    /// A `size_t` in bytes that may be zero.
    Length(usize) enter size;
    /// A `void **` that receives the memory.
    OutPointer(usize) absent pointer out pointer null Pointer in pointer;
    /// A `ur_physical_mem_handle_t *`, `ur_event_handle_t *`, `ur_usm_pool_handle_t *` or `ze_event_pool_handle_t *`.
    OutObject(usize) absent object out object null Pointer in object;
    /// A pointer to a [`HandleBytes`] that receives a handle.
    OutHandleBytes(usize) absent data out handle_bytes null Pointer in data;
    /// A `ur_context_handle_t *`.
    OutContext(usize) absent context out context null Pointer in context;
    /// A `void *` to memory that a command accesses when it executes.
    Accessed(usize) enter pointer;
    /// A `const void *` to memory that a command copies from when it executes.
    CopiedFrom(usize) enter source;
    /// A word that is passed on but not recorded.
    Unseen(usize);
    /// A 32-bit word that is passed on but not recorded.
    Unseen32(u32);
    /// A pointer to a description whose flags are recorded.
    Desc(usize) source desc null Description {
        #[inline]
        fn null_in(values: &Values) -> Option<Null> {
            if values.flags.is_none() { Some(Null::Description) } else { None }
        }
    };
}

/// A `ze_ipc_event_counter_based_handle_t`, `CUipcMemHandle` or `CUipcEventHandle`, which C passes by value. Its bytes
/// identify it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandleBytes {
    words: [u64; 8],
}

impl Role for HandleBytes {
    fn of_word(word: u64) -> Self {
        Self { words: [word, 0, 0, 0, 0, 0, 0, 0] }
    }

    fn enter(self, values: &mut Values) {
        let bytes = self.words.map(u64::to_le_bytes);
        let of_bytes = fingerprint(bytes.as_flattened());
        (values.data, values.fingerprint) = (Some(of_bytes), Some(of_bytes));
    }
}
