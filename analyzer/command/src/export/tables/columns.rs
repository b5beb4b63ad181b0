//! The tables: each is one type of row, whose fields are its columns and whose comments are their documentation.

use super::row::{Cell, Column, Field, Hex, Row};

macro_rules! tables {
    ($($place:literal $name:literal $(#[doc = $about:literal])+ $row:ident<$life:lifetime> { $($(#[doc = $doc:literal])+ $field:ident: $type:ty,)* })*) => {
        $(
            $(#[doc = $about])+
            #[allow(clippy::struct_field_names, reason = "what a row is of may also be the name of a column")]
            pub(super) struct $row<$life> {
                $($(#[doc = $doc])+ pub(super) $field: $type,)*
            }

            impl<$life> Row for $row<$life> {
                const TABLE: usize = $place;
                const NAME: &'static str = $name;
                const ABOUT: &'static str = concat!($($about),+);

                fn columns() -> Vec<Column> {
                    vec![$(Column {
                        name: stringify!($field),
                        shape: <$type as Field>::SHAPE,
                        optional: <$type as Field>::OPTIONAL,
                        about: concat!($($doc),+),
                    },)*]
                }

                fn cells<'c>(&'c self, each: &mut dyn FnMut(Cell<'c>)) {
                    $(each(self.$field.cell());)*
                }
            }
        )*

        /// A table: its name, what a row of it is, its columns.
        pub(super) fn all() -> Vec<(&'static str, &'static str, Vec<Column>)> {
            vec![$(($row::NAME, $row::ABOUT, $row::columns()),)*]
        }
    };
}

tables! {
    0 "calls"
    /// A row for each call. What was handed in and what was answered stand in one column where they have one name.
    Call<'a> {
        /// The host of the process.
        host: &'a str,
        /// The number of the process in the run, in the order in which processes began, from 0 on.
        process: u32,
        /// Its number on its host.
        pid: u32,
        /// The thread.
        tid: u32,
        /// The number of the call in its process, from 1 on.
        call: u64,
        /// The function.
        function: &'a str,
        /// When it began, in nanoseconds since the first process of the run did.
        begin_ns: u64,
        /// When it returned; empty if it never did.
        end_ns: Option<u64>,
        /// How long it took, in nanoseconds.
        took_ns: Option<u64>,
        /// The `ur_result_t` that it answered.
        result: Option<u64>,
        /// Its name.
        result_name: Option<String>,
        /// The life that it made: of handle data, or of an opening (`handles.life`).
        made: Option<u64>,
        /// Of an open: the life of the handle data that it opened (`handles.life`).
        opened: Option<u64>,
        /// Which adapter served it: its number in the trace's door records.
        via: Option<u64>,
        /// The adapter handle.
        adapter: Option<Hex>,
        /// The device handle.
        device: Option<Hex>,
        /// The context handle.
        context: Option<Hex>,
        /// The physical memory or event handle that was handed in, or that was made or opened.
        object: Option<Hex>,
        /// The address of memory that was handed in, or that was allocated or opened.
        pointer: Option<Hex>,
        /// A size in bytes.
        size: Option<u64>,
        /// An offset in bytes.
        offset: Option<u64>,
        /// A set of flags.
        flags: Option<Hex>,
        /// How many objects.
        count: Option<u64>,
        /// The address of handle data that was handed in or got.
        data: Option<Hex>,
        /// The size of handle data in bytes.
        data_size: Option<u64>,
        /// The fingerprint of the handle data that was got or is opened.
        fingerprint: Option<Hex>,
        /// The `ur_device_info_t` asked for.
        property: Option<Hex>,
        /// The answer to a question.
        value: Option<u64>,
        /// The number of the call stack in the process's trace.
        stack: Option<u64>,
    }

    1 "handles"
    /// A row for each life: of handle data, and of what was opened.
    Handle<'a> {
        /// The host of the process.
        host: &'a str,
        /// The number of the process in the run, in the order in which processes began, from 0 on.
        process: u32,
        /// Its number on its host.
        pid: u32,
        /// The thread that made it.
        tid: u32,
        /// The number of the life, never the same twice in a run.
        life: u64,
        /// `handle`: handle data in its producer, from get to put. `opening`: something opened in a consumer, from open to close.
        lane: &'a str,
        /// What lives: `mem-handle`, `physical-mem-handle`, `event-handle`, or `mapping`, `physical-mem`, `event`.
        kind: &'a str,
        /// Its address or handle in its process.
        address: Hex,
        /// How many bytes can be seen through it; events have none.
        bytes: Option<u64>,
        /// The fingerprint of its handle data, if it is known.
        fingerprint: Option<Hex>,
        /// Equal for all handle data that is got of one pointer of one allocation with equal bytes, and for all openings of it.
        export: Option<u64>,
        /// The number of the process that got the handle data (`processes.process`).
        producer: Option<u32>,
        /// Of an opening: the life of the handle data that was opened (`handles.life`).
        handle: Option<u64>,
        /// When it began, in nanoseconds since the first process of the run did.
        born_ns: u64,
        /// In which call (`calls.call`).
        born_call: u64,
        /// When it ended; empty if it still lived in a process that still ran.
        died_ns: Option<u64>,
        /// By which call of its process, if one ended it.
        died_call: Option<u64>,
        /// How it ended: by a function's name, or `exit`, `kill`, `exec`, `end of trace`, `replaced` (its address was given out anew).
        how: Option<&'a str>,
    }

    2 "findings"
    /// A row for each finding of the judgement.
    Finding<'a> {
        /// The host where the first one happened.
        host: &'a str,
        /// The number of the process in the run (`processes.process`).
        process: Option<u32>,
        /// Its number on its host.
        pid: u32,
        /// The thread; 0 at the end of a process.
        tid: u32,
        /// The code of the rule.
        rule: &'a str,
        /// `note`, `warning` or `error`.
        severity: &'a str,
        /// When, in nanoseconds since the first process of the run began.
        at_ns: u64,
        /// In which function.
        function: Option<&'a str>,
        /// In which call (`calls.call`).
        call: Option<u64>,
        /// What happened.
        message: &'a str,
        /// What to do.
        advice: &'a str,
        /// How often.
        count: u64,
        /// The object.
        subject: Option<&'a str>,
        /// What kind of object it is.
        kind: Option<&'a str>,
        /// Its size in bytes.
        bytes: Option<u64>,
        /// The fingerprint of its handle data.
        fingerprint: Option<&'a str>,
        /// By what it is known again in another run.
        identity: &'a str,
        /// The call stack, a line for each frame, innermost first.
        stack: String,
        /// The number of the process on the other side.
        other_process: Option<u32>,
        /// Its number on its host.
        other_pid: Option<u32>,
        /// Its thread.
        other_tid: Option<u32>,
        /// Its function.
        other_function: Option<&'a str>,
        /// Its call.
        other_call: Option<u64>,
        /// When that was.
        other_at_ns: Option<u64>,
        /// Its call stack.
        other_stack: Option<String>,
    }

    3 "processes"
    /// A row for each process.
    Process<'a> {
        /// The host of the process.
        host: &'a str,
        /// The number of the process in the run, in the order in which processes began, from 0 on.
        process: u32,
        /// Its number on its host.
        pid: u32,
        /// The boot id of its host: addresses and numbers of processes mean the same only within one.
        boot: &'a str,
        /// Its rank, if a launcher gave it one.
        rank: Option<u32>,
        /// Its executable.
        executable: &'a str,
        /// Its command line, with spaces between.
        command: String,
        /// When it began, in nanoseconds since the first process of the run did.
        began_ns: u64,
        /// The same moment in nanoseconds of its host's real time: this relates runs and folders to each other.
        realtime_ns: Option<u64>,
        /// How it ended: `exited`, `killed`, `running`, `exec` or `incomplete`.
        ended: &'a str,
        /// When it ended, or its trace did.
        ended_ns: u64,
        /// How many calls were seen.
        calls: u64,
        /// How many of these were `urIPC*` calls.
        ipc_calls: u64,
        /// How many records of calls could not be written.
        lost: u64,
        /// Its trace.
        trace: &'a str,
    }
}
