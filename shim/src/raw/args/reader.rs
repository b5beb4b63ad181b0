//! What an interface reads of the caller's memory: the structures that only it has.

use std::fmt::Debug;

use urscope_schema::api::role::Sources;
use urscope_schema::call::Values;

/// Reads the structures of an interface. What it has nothing of is as if no call had it.
pub trait Reader: Debug + Sync {
    /// Adds what the structures of a call hold to its values. The call is about to be made.
    fn describe(&self, _sources: &Sources, _values: &mut Values) {}

    /// Adds the answers of a call to its values that the callee wrote to structures and variables of this interface.
    /// The call has succeeded.
    fn answers(&self, _sources: &Sources, _values: &mut Values) {}

    /// Shows `visit` each word of a kernel's arguments that may be a pointer; false if it is not known where they are.
    fn kernel_pointers(&self, _sources: &Sources, _visit: &mut dyn FnMut(u64)) -> bool {
        true
    }

    /// Whether a structure of the call asks for a descriptor of memory.
    fn asks_for_descriptor(&self, _sources: &Sources) -> bool {
        false
    }

    /// Whether each command in a queue that the call creates has completed when its call returns.
    fn makes_synchronous(&self, _sources: &Sources) -> bool {
        false
    }

    /// Whether the call creates a command list that is executed later.
    fn makes_list(&self, _sources: &Sources) -> bool {
        false
    }

    /// Whether the queue that the call creates does not wait for the default one.
    fn makes_non_blocking(&self, _sources: &Sources) -> bool {
        false
    }

    /// Whether the program has a native handle of the queue that the call creates, by which it can wait and enqueue.
    fn makes_native(&self, _sources: &Sources) -> bool {
        false
    }

    /// Whether the queue that the call creates may execute its commands in any order; `None` if it is a stream of an
    /// interface that has only queues in order.
    fn makes_out_of_order(&self, _sources: &Sources) -> Option<bool> {
        None
    }

    /// The address and the number of the events that a command waits for.
    fn wait_list(&self, _sources: &Sources) -> (usize, usize) {
        (0, 0)
    }

    /// Whether the call, if it succeeds, signals an event behind what it enqueues.
    fn signals(&self, _sources: &Sources) -> bool {
        false
    }

    /// The event that is signalled behind what the call has enqueued, or 0. The call has succeeded.
    fn signalled(&self, _sources: &Sources) -> usize {
        0
    }

    /// Whether the answer of a call that asks for the state of an event is that it is signalled. The call has
    /// succeeded.
    fn shows_signalled(&self, _sources: &Sources) -> bool {
        true
    }

    /// The queue or command list that the call is about, 0 for the default one; `None` if it is not known.
    fn queue(&self, sources: &Sources) -> Option<usize> {
        Some(sources.queue)
    }

    /// The address and the number of the command lists that a call executes.
    fn lists(&self, _sources: &Sources) -> (usize, usize) {
        (0, 0)
    }

    /// The first address of the allocation or mapping that an address of device memory lies in, and the one behind its
    /// last, where the answer of a call does not tell.
    fn allocation_around(&self, _address: u64) -> Option<[u64; 2]> {
        None
    }

    /// Forgets the kernels, because code is about to be unloaded: later ones may have the same handles.
    fn forget_kernels(&self) {}
}

/// For calls whose structures are not read.
#[derive(Debug)]
pub struct NoReader;

impl Reader for NoReader {}
