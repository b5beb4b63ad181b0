//! The definitions of the tables. Each is a row type; its fields are the columns, and their comments are the
//! documentation.

use urscope_schema::trace::records::Hex;

use super::row::{Cell, Column, Field, Row};

macro_rules! tables {
    ($($place:literal $name:literal $(#[doc = $about:literal])+ $row:ident<$life:lifetime> { $($(#[doc = $doc:literal])+ $field:ident: $type:ty,)* })*) => {
        $(
            $(#[doc = $about])+
            #[allow(clippy::struct_field_names, reason = "a column may have the name of its table's object")]
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

        /// All tables: the name, the description of a row, and the columns of each.
        pub(super) fn all() -> Vec<(&'static str, &'static str, Vec<Column>)> {
            vec![$(($row::NAME, $row::ABOUT, $row::columns()),)*]
        }
    };
}

tables! {
    0 "calls"
    /// A row for each call. A parameter and a result of the same name share a column.
    Call<'a> {
        /// The host of the process.
        host: &'a str,
        /// The number of the process in the run, in the order in which processes began, from 0.
        process: u32,
        /// The process number on its host.
        pid: u32,
        /// The rank that a launcher assigned to the process, if any.
        rank: Option<u32>,
        /// The thread number.
        tid: u32,
        /// The number of the call in its process, from 1.
        call: u64,
        /// The function that was called.
        function: &'a str,
        /// When the call began, in nanoseconds since the first process of the run began.
        begin_ns: u64,
        /// When the call returned; empty if it never did.
        end_ns: Option<u64>,
        /// How long the call took, in nanoseconds.
        took_ns: Option<u64>,
        /// The `ur_result_t` that it returned.
        result: Option<u64>,
        /// The name of the result.
        result_name: Option<String>,
        /// The lifetime that the call began: of handle data, or of an opening (`handles.life`).
        made: Option<u64>,
        /// For an open: the lifetime of the handle data that it opened (`handles.life`).
        opened: Option<u64>,
        /// The adapter that executed the call: its number in the entry-point records of the trace.
        via: Option<u64>,
        /// The adapter handle.
        adapter: Option<Hex>,
        /// The device handle.
        device: Option<Hex>,
        /// The context handle.
        context: Option<Hex>,
        /// The physical memory or event handle that was passed, created or opened.
        object: Option<Hex>,
        /// The address of memory that was passed, allocated or opened.
        pointer: Option<Hex>,
        /// A size in bytes.
        size: Option<u64>,
        /// An offset in bytes.
        offset: Option<u64>,
        /// A set of flags.
        flags: Option<Hex>,
        /// The number of objects.
        count: Option<u64>,
        /// The address of handle data that was passed or got.
        data: Option<Hex>,
        /// The size of handle data in bytes.
        data_size: Option<u64>,
        /// The fingerprint of the handle data that was got or opened.
        fingerprint: Option<Hex>,
        /// The queried `ur_device_info_t`.
        property: Option<Hex>,
        /// The result of a query.
        value: Option<u64>,
        /// The process that opened handle data names as its exporter.
        exporter: Option<u64>,
        /// The address in its exporter that opened handle data names.
        exported: Option<Hex>,
        /// The address that a command copies from.
        source: Option<Hex>,
        /// The queue or stream that a command goes to; 0 is the default stream of CUDA.
        queue: Option<Hex>,
        /// What urscope noticed, as bits.
        noticed: Option<Hex>,
        /// The first byte that an unfinished command accesses.
        unfinished: Option<u64>,
        /// The call that appended an executed command.
        appended: Option<u64>,
        /// The checksum of handle data.
        checksum: Option<u64>,
        /// The first byte that the adapter changed.
        changed: Option<u64>,
        /// The number of the call stack in the process's trace.
        stack: Option<u64>,
    }

    1 "handles"
    /// A row for each lifetime of handle data and of an opening.
    Handle<'a> {
        /// The host of the process.
        host: &'a str,
        /// The number of the process in the run, in the order in which processes began, from 0.
        process: u32,
        /// The process number on its host.
        pid: u32,
        /// The rank that a launcher assigned to the process, if any.
        rank: Option<u32>,
        /// The thread that began the lifetime.
        tid: u32,
        /// The number of the lifetime, unique in the run.
        life: u64,
        /// `handle`: handle data in its producer, from get to put. `opening`: something opened in a consumer, from open
        /// to close.
        lane: &'a str,
        /// The kind of object: `mem-handle`, `physical-mem-handle`, `event-handle`, or `mapping`, `physical-mem`,
        /// `event`.
        kind: &'a str,
        /// The address or handle of the object in its process.
        address: Hex,
        /// The number of bytes that can be accessed through it; empty for events.
        bytes: Option<u64>,
        /// The fingerprint of its handle data, if known.
        fingerprint: Option<Hex>,
        /// A number that is equal for all handle data with equal bytes that was got for one pointer of one allocation,
        /// and for all openings of it.
        export: Option<u64>,
        /// The number of the process that got the handle data (`processes.process`).
        producer: Option<u32>,
        /// For an opening: the lifetime of the handle data that was opened (`handles.life`).
        handle: Option<u64>,
        /// When the lifetime began, in nanoseconds since the first process of the run began.
        born_ns: u64,
        /// The call that began it (`calls.call`).
        born_call: u64,
        /// When it ended; empty if the object is alive in a process that still runs.
        died_ns: Option<u64>,
        /// The call of its process that ended it, if any (`calls.call`).
        died_call: Option<u64>,
        /// How it ended: the name of a function, or `exit`, `kill`, `exec`, `end of trace`, `replaced` (its address was
        /// assigned again).
        how: Option<&'a str>,
    }

    2 "findings"
    /// A row for each finding of the judgement.
    Finding<'a> {
        /// The host of the first occurrence.
        host: &'a str,
        /// The number of the process in the run (`processes.process`).
        process: Option<u32>,
        /// The process number on its host.
        pid: u32,
        /// The rank that a launcher assigned to the process, if any.
        rank: Option<u32>,
        /// The thread number; 0 at the end of a process.
        tid: u32,
        /// The name of the rule.
        rule: &'a str,
        /// `note`, `warning` or `error`.
        severity: &'a str,
        /// When it happened, in nanoseconds since the first process of the run began.
        at_ns: u64,
        /// The function in which it happened.
        function: Option<&'a str>,
        /// The call in which it happened (`calls.call`).
        call: Option<u64>,
        /// What happened.
        message: &'a str,
        /// What to do.
        advice: &'a str,
        /// How often it happened.
        count: u64,
        /// The object that it is about.
        subject: Option<&'a str>,
        /// The kind of the object.
        kind: Option<&'a str>,
        /// The size of the object in bytes.
        bytes: Option<u64>,
        /// The fingerprint of the object's handle data.
        fingerprint: Option<&'a str>,
        /// A value that identifies the same finding in another run.
        identity: &'a str,
        /// The call stack, one line for each frame, innermost first.
        stack: String,
        /// The number of the other process that is involved.
        other_process: Option<u32>,
        /// The process number on its host.
        other_pid: Option<u32>,
        /// The rank of the other process, if any.
        other_rank: Option<u32>,
        /// The thread of the other process.
        other_tid: Option<u32>,
        /// The function that the other process called.
        other_function: Option<&'a str>,
        /// The number of that call.
        other_call: Option<u64>,
        /// When that happened, in nanoseconds since the first process of the run began.
        other_at_ns: Option<u64>,
        /// The call stack of that call.
        other_stack: Option<String>,
    }

    3 "processes"
    /// A row for each process.
    Process<'a> {
        /// The host of the process.
        host: &'a str,
        /// The number of the process in the run, in the order in which processes began, from 0.
        process: u32,
        /// The process number on its host.
        pid: u32,
        /// The boot id of its host. Addresses and process numbers can be compared only within one boot.
        boot: &'a str,
        /// The rank that a launcher assigned, if any.
        rank: Option<u32>,
        /// The path of the executable.
        executable: &'a str,
        /// The command line, separated by spaces; empty unless `--command-lines` asks for it, because it may contain
        /// secrets.
        command: String,
        /// When the process began, in nanoseconds since the first process of the run began.
        began_ns: u64,
        /// The same moment as real time of its host, in nanoseconds, to relate runs and folders to each other.
        realtime_ns: Option<u64>,
        /// How the process ended: `exited`, `killed`, `running`, `exec` or `incomplete`.
        ended: &'a str,
        /// When the process or its trace ended.
        ended_ns: u64,
        /// How many calls were recorded.
        calls: u64,
        /// How many of these share something.
        ipc_calls: u64,
        /// How many records of calls could not be written.
        lost: u64,
        /// The path of the trace.
        trace: &'a str,
    }
}
