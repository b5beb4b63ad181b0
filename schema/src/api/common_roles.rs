//! The roles of parameters: how one is passed, under which name it is recorded, and when it can be read.
//!
//! Each role wraps the machine word that C passes, so a row's roles are also the signature of its C function. A role
//! never reads memory: the shim does, at the addresses that [`Role::source`] and [`Role::out`] give. Here are the roles
//! that several interfaces have; each interface has its own in a file of its folder.

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

    /// Whether the shim looks at the argument.
    const IS_SEEN: bool = true;

    /// Whether [`Self::redirected`] may change the argument.
    const IS_REDIRECTED: bool = false;

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
    /// `ur_context_properties_t`, `ze_event_pool_desc_t`).
    pub desc: usize,
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
    /// A queue or command list that a command goes to.
    pub queue: usize,
    /// The context of a new queue.
    pub queue_context: usize,
    /// Of a variable that receives a new queue or command list.
    pub new_queue: usize,
    /// What only this interface has.
    pub structures: Structures,
}

/// The arguments of a call that only its interface can read: structures of the caller's, and what is needed to read
/// them. A structure that is null is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Structures {
    kinds: [u8; Self::LIMIT],
    words: [u64; Self::LIMIT],
    count: u8,
    is_written: bool,
}

impl Structures {
    /// The most of them in a call.
    const LIMIT: usize = 5;

    /// Kinds from this on are of structures and variables that the callee writes.
    pub const WRITTEN: u8 = 128;

    /// Adds one, of a kind that the interface has numbered.
    #[inline]
    pub fn add(&mut self, kind: u8, word: u64) {
        let at = usize::from(self.count);
        if let (Some(its), Some(place)) = (self.kinds.get_mut(at), self.words.get_mut(at))
            && word != 0
        {
            (*its, *place) = (kind, word);
            self.count += 1;
            self.is_written |= kind >= Self::WRITTEN;
        }
    }

    /// Whether the callee writes to one of them.
    #[inline]
    pub const fn are_written(&self) -> bool {
        self.is_written
    }

    /// Whether there are none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Their kinds, and the addresses or numbers.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (u8, u64)> {
        self.kinds.iter().copied().zip(self.words).take(usize::from(self.count))
    }

    /// The address or number of a kind; 0 if there is none.
    #[inline]
    pub fn get(&self, kind: u8) -> u64 {
        self.iter().find(|(its, _)| *its == kind).map_or(0, |(_, word)| word)
    }
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
    /// Of a handle of 64 bytes that identify it.
    pub handle_bytes: usize,
    /// The copy of the handle data that is opened; not an out-parameter of the caller's.
    pub copied_data: usize,
}

impl OutParams {
    /// No out-parameter at all.
    pub const NONE: Self =
        Self { pointer: 0, data: 0, data_size: 0, context: 0, object: 0, handle_bytes: 0, copied_data: 0 };
}

macro_rules! roles {
    ($($(#[$doc:meta])* $name:ident($word:ty) $(bytes $bytes:literal)? $(enter $field:ident)? $(absent $absent:ident)? $(source $source:ident)? $(structure $structure:ident)? $(out $place:ident)? $(null $null:ident $(in $seen:ident)?)? $({ $($own:tt)* })?;)*) => {
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
                    fn source(self, sources: &mut Sources) {
                        sources.structures.add(structures::$structure, self.0 as u64);
                    }
                )?
                $(
                    const IS_REDIRECTED: bool = true;

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
    /// An event of a command or of a list, or a fence, which is not recorded.
    CommandEvent(usize) source event;
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
    /// A `ze_command_queue_handle_t`, `ze_command_list_handle_t` or `ur_queue_handle_t` that a command goes to.
    Queue(usize) source queue;
    /// The context of a new queue.
    QueueContext(usize) source queue_context null Handle;
    /// A pointer to such a handle, that receives a new one.
    OutQueue(usize) source new_queue;
    /// A word that is passed on but not recorded.
    Unseen(usize) {
        const IS_SEEN: bool = false;
    };
    /// A 32-bit word that is passed on but not recorded.
    Unseen32(u32) {
        const IS_SEEN: bool = false;
    };
    /// A pointer to a description whose flags are recorded.
    Desc(usize) source desc null Description {
        #[inline]
        fn null_in(values: &Values) -> Option<Null> {
            if values.flags.is_none() { Some(Null::Description) } else { None }
        }
    };
}

/// A structure of three 32-bit sizes, which C passes by value: a `ze_group_count_t`, `ze_group_size_t` or `dim3`. It is
/// not recorded.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnseenSizes {
    sizes: [u32; 3],
}

impl Role for UnseenSizes {
    const IS_SEEN: bool = false;

    fn of_word(word: u64) -> Self {
        Self { sizes: [word as u32, (word >> 32) as u32, 1] }
    }
}

/// A `ze_ipc_event_counter_based_handle_t`, `CUipcMemHandle` or `CUipcEventHandle`, which C passes by value. Its bytes
/// identify it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandleBytes {
    /// Its bytes, in the order of the machine.
    pub words: [u64; 8],
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::role::{IpcHandle, IpcProperty, OutData, OutDataSize};
    use crate::api::unified_runtime::constants;

    #[test]
    fn a_role_is_as_wide_as_what_c_passes() {
        assert_eq!(size_of::<Context>(), size_of::<*mut u8>());
        assert_eq!(size_of::<OutDataSize>(), size_of::<*mut usize>());
        assert_eq!(size_of::<Count>(), size_of::<u32>());
        assert_eq!(size_of::<IpcProperty>(), size_of::<u32>());
        assert_eq!(size_of::<IpcHandle>(), 64, "ZE_MAX_IPC_HANDLE_SIZE");
        assert_eq!(size_of::<HandleBytes>(), 64, "ZE_MAX_IPC_HANDLE_SIZE, CU_IPC_HANDLE_SIZE");
    }

    #[test]
    fn a_role_speaks_for_its_own_side_of_the_call() {
        let mut values = Values::default();
        let mut places = OutParams::default();
        Pointer(7).enter(&mut values);
        Pointer(7).out(&mut places);
        OutData(9).enter(&mut values);
        OutData(9).out(&mut places);
        assert_eq!(values, Values { pointer: Some(7), ..Values::default() });
        assert_eq!(places, OutParams { data: 9, ..OutParams::default() });
    }

    #[test]
    fn an_answer_is_redirected_only_where_one_is_wanted() {
        let places = OutParams { data: 0x1000, ..OutParams::default() };
        assert_eq!(OutData(9).redirected(&places), OutData(0x1000));
        assert_eq!(OutData(0).redirected(&places), OutData(0), "a null place stays null");
        assert_eq!(OutPointer(9).redirected(&places), OutPointer(9), "no place of ours for it");
        assert_eq!(Pointer(9).redirected(&places), Pointer(9), "not an answer");
    }

    #[test]
    fn only_questions_about_ipc_are_watched() {
        assert!(IpcProperty(constants::UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP).watched());
        assert!(IpcProperty(constants::UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP).watched());
        assert!(!IpcProperty(constants::UR_DEVICE_INFO_REUSABLE_EVENTS_SUPPORT_EXP).watched());
        assert!(!IpcProperty(0).watched());
    }
}
