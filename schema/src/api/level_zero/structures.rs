//! What only Level Zero can read of a call: the kinds of [`Structures`]. They are addresses, unless they say something
//! else.

use crate::api::common_roles::Structures;

/// Of a structure whose extensions may import a descriptor.
pub const EXTENDED: u8 = 0;
/// Of a structure whose extensions may ask for a descriptor, which the callee writes.
pub const EXPORTING: u8 = Structures::WRITTEN + 1;
/// Of a `ze_physical_mem_desc_t`, likewise extended.
pub const PHYSICAL_DESC: u8 = 2;
/// Of a list of `ze_ipc_mem_handle_t`.
pub const IPC_HANDLES: u8 = 3;
/// Of an IPC handle that the callee writes.
pub const OUT_IPC_HANDLE: u8 = Structures::WRITTEN + 4;
/// Of a `ze_command_queue_desc_t`.
pub const QUEUE_DESC: u8 = 5;
/// Of a `ze_command_list_desc_t`.
pub const LIST_DESC: u8 = 6;
/// Of a list of command lists.
pub const LISTS: u8 = 7;
/// An event or a fence that is signalled, itself.
pub const SIGNAL_EVENT: u8 = 8;
/// The number of the events that a command waits for, itself.
pub const WAIT_COUNT: u8 = 9;
/// Of a list of them.
pub const WAIT_LIST: u8 = 10;
