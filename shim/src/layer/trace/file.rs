//! What the trace files of both forms have in common: where they are created, and what is reported of errors.

use std::{io, path::Path};

use urscope_schema::trace::{Form, records::Header, write};

use crate::{
    knobs,
    raw::{process, stderr},
};

/// The most files of one process: one for each program that it executes by `exec`.
const AGAIN: u32 = 10_000;

/// The header of this process. Reports what is wrong with the environment, because now tracing begins.
pub(super) fn header(forked: bool) -> Header {
    let knobs = knobs::read();
    for complaint in knobs::complaints() {
        stderr::say(&complaint);
    }
    // From now on, the end of this process is that of its trace.
    super::pid();
    process::describe(&knobs.run, forked, knobs::rank())
}

/// Creates the trace file by `make`; `None`, with a message, where that is not possible.
pub(super) fn create<F>(form: Form, header: &Header, make: impl Fn(&Path) -> io::Result<F>) -> Option<F> {
    let directory = &knobs::read().directory;
    let create = || {
        std::fs::create_dir_all(directory)?;
        for again in 0..AGAIN {
            let name = write::file_name(form, process::name(header), header.pid, header.start, again);
            match make(&directory.join(name)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                done => return done,
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "every name for the file is taken"))
    };
    let created = create();
    if let Err(error) = &created {
        stderr::say(&format!(
            "cannot write a trace into {}: {error}; set URSCOPE_DIR to a directory with room that this user can write to; the \
             program continues without a trace",
            directory.display()
        ));
    }
    created.ok()
}

/// Reports that a file does not grow any more.
pub(super) fn ends_here(path: &Path, error: &io::Error) {
    stderr::say(&format!(
        "the trace {} ends here: {error}; the program continues, and further calls are counted but not recorded",
        path.display()
    ));
}
