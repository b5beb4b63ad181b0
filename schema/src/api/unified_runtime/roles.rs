//! The roles of parameters that only functions of Unified Runtime have.

use super::INTERFACE;
use super::structures;
use crate::api::common_roles::{Null, OutParams, Role, Sources};
use crate::values::Values;

roles! {
    /// A `ur_adapter_handle_t`.
    Adapter(usize) enter adapter null Handle in adapter;
    /// A 32-bit property that is asked for.
    Property(u32) enter property;
    /// A `const ur_device_handle_t *`.
    Devices(usize) absent device source devices null Pointer in device;
    /// A `const ur_usm_desc_t *`, or null.
    UsmDesc(usize) structure USM_DESC;
    /// A `const ur_event_handle_t *`.
    Events(usize) absent object source events null Pointer in object;
    /// A `ur_usm_pool_handle_t`.
    Pool(usize) enter object null Handle in object;
    /// A pointer to handle data.
    Data(usize) enter data null Pointer in data;
    /// The `size_t` of the handle data in bytes.
    DataSize(usize) enter data_size;
    /// A `void **` that receives the handle data, or null.
    OutData(usize) absent data out data null Answer in data;
    /// A `size_t *` that receives the size of the handle data, or null.
    OutDataSize(usize) absent data_size out data_size null Answer in data_size;
    /// A `ur_bool_t *` that receives the value of a property, or null.
    OutBool(usize) absent value structure OUT_BOOL null Value in value;
    /// The buffer for the value of a property, which is not recorded, or null.
    OutValue(usize) absent value null Value in value;
    /// The size of that buffer in bytes, a `size_t`.
    ValueSize(usize) absent size null ValueSize in size;
    /// A `size_t *` that receives the size of the value, or null.
    OutValueSize(usize) absent data_size null AnswerSize in data_size;
    /// Whether the call waits for its command, a C++ `bool` in the low byte.
    Blocking(u32) bytes 1 enter value;
    /// A `const ur_exp_kernel_arg_properties_t *`. Of the pointers among them, those into shared memory are recorded,
    /// two at most.
    KernelArgs(usize) structure KERNEL_ARGS;
    /// The `uint32_t` that counts them.
    KernelArgCount(u32) structure KERNEL_ARG_COUNT;
    /// A `ur_event_handle_t *` that receives the event of a command, or holds a reusable event that the command is to
    /// signal.
    InOutEvent(usize) {
        #[inline]
        fn source(self, sources: &mut Sources) {
            sources.events = self.0;
            sources.count = u32::from(self.0 != 0);
        }
    };
    /// A pointer to handle data that is opened. The callee gets a copy, because an adapter may write into it (Level
    /// Zero v1 does).
    OpenedData(usize) enter data null Pointer in data {
        const IS_REDIRECTED: bool = true;

        #[inline]
        fn redirected(self, to: &OutParams) -> Self {
            if self.0 == 0 || to.copied_data == 0 { self } else { Self(to.copied_data) }
        }
    };
    /// A `ur_usm_pool_handle_t` to allocate from, or null for the default one, which is not recorded.
    FromPool(usize) {
        #[inline]
        fn enter(self, values: &mut Values) {
            values.object = Some(self.0 as u64).filter(|pool| *pool != 0);
        }
    };
    /// The `uint32_t` that counts the events that a command waits for.
    WaitListLength(u32) structure WAIT_COUNT;
    /// A `const ur_event_handle_t *`, the events that a command waits for, or null.
    WaitList(usize) structure WAIT_LIST;
    /// A `ur_event_handle_t *` that receives the event of a command, or null.
    OutEvent(usize) structure OUT_EVENT;
    /// A `const ur_queue_properties_t *`, or null.
    QueueProperties(usize) structure QUEUE_PROPERTIES;
    /// A `ur_native_handle_t` of a queue.
    NativeQueue(usize) structure NATIVE_QUEUE;
    /// A `ur_event_info_t`.
    EventProperty(u32) enter property structure STATE_PROPERTY;
    /// A buffer for the value of a property of an event.
    OutEventValue(usize) absent value structure STATE_VALUE null Value in value;
    /// A `ur_queue_info_t`.
    StateProperty(u32) structure STATE_PROPERTY;
    /// A buffer for its value, or null.
    OutState(usize) structure STATE_VALUE;
    /// The `uint32_t` that counts the events that a command waits for; 0 is not recorded.
    WaitCount(u32) structure WAIT_COUNT {
        #[inline]
        fn enter(self, values: &mut Values) {
            values.count = Some(u64::from(self.0)).filter(|count| *count != 0);
        }
    };
    /// A `ur_device_info_t`. It is recorded if it asks for IPC support.
    IpcProperty(u32) enter property {
        #[inline]
        fn watched(self) -> bool {
            INTERFACE.support.iter().any(|(property, _)| *property == self.0)
        }
    };
}

/// A `ur_rect_offset_t` or `ur_rect_region_t`, which C passes by value. It is passed on but not recorded.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnseenTriple {
    sizes: [u64; 3],
}

impl Role for UnseenTriple {
    const IS_SEEN: bool = false;

    fn of_word(word: u64) -> Self {
        Self { sizes: [word, 0, 0] }
    }
}
