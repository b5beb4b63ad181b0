//! What only Unified Runtime can read of a call: the kinds of [`Structures`].

use crate::api::common_roles::Structures;

/// The address of a `ur_usm_desc_t`.
pub const USM_DESC: u8 = 0;
/// The address of a list of `ur_exp_kernel_arg_properties_t`.
pub const KERNEL_ARGS: u8 = 1;
/// The number of its elements.
pub const KERNEL_ARG_COUNT: u8 = 2;
/// The number of the events that a command waits for.
pub const WAIT_COUNT: u8 = 3;
/// The address of a list of them.
pub const WAIT_LIST: u8 = 4;
/// The address of a variable that receives the event of a command.
pub const OUT_EVENT: u8 = 5;
/// The address of a `ur_queue_properties_t`.
pub const QUEUE_PROPERTIES: u8 = 6;
/// The native handle that a queue is made of.
pub const NATIVE_QUEUE: u8 = 7;
/// The `ur_event_info_t` that an event is asked for, or the `ur_queue_info_t` of a queue.
pub const STATE_PROPERTY: u8 = 8;
/// The address of the value that answers it.
pub const STATE_VALUE: u8 = 9;
/// The address of a `ur_bool_t` (one byte) that the callee writes.
pub const OUT_BOOL: u8 = Structures::WRITTEN + 3;
