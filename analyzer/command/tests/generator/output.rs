//! The trace file of a process, in one of the two forms.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};

use urscope_schema::call::{Enter, Exit};
use urscope_schema::trace::chrome::write::{self, End, Line};
use urscope_schema::trace::fxt::{self, CHUNK, UNWRITTEN};
use urscope_schema::trace::{Form, records::Named};

/// The number of bytes after the last record of a killed process.
const AHEAD: usize = 1 << 20;

/// A trace file that is being written.
pub(super) struct Output {
    pid: u32,
    file: BufWriter<File>,
    /// The chunk that is being filled; `None` in the Chrome form.
    chunk: Option<Vec<u64>>,
}

impl Output {
    /// Begins a trace.
    pub(super) fn begin(form: Form, file: File, pid: u32) -> io::Result<Self> {
        let mut output = Self { pid, file: BufWriter::with_capacity(1 << 20, file), chunk: None };
        match form {
            Form::Chrome => output.file.write_all(&write::start(pid, "generator", "generator"))?,
            Form::Binary => {
                let chunk = output.chunk.insert(fxt::write::beginning(pid, "generator"));
                chunk.extend(fxt::write::head(0));
                chunk.extend(fxt::write::thread(pid, pid));
            }
        }
        Ok(output)
    }

    /// Writes a record that is not of a call.
    pub(super) fn record<R: Named>(&mut self, record: &R) -> io::Result<()> {
        match self.chunk {
            None => self.file.write_all(&write::record(self.pid, record)),
            Some(_) => self.words(&fxt::write::record(record).unwrap_or_default()),
        }
    }

    /// Writes the beginning of a call.
    pub(super) fn enter(&mut self, enter: &Enter) -> io::Result<()> {
        if self.chunk.is_none() {
            let mut line = Line::default();
            line.enter(self.pid, 0, enter);
            return self.line(&line);
        }
        let mut words = vec![0];
        let first = fxt::write::enter(enter, &mut words);
        self.record_of(first, words)
    }

    /// Writes the return of a call.
    pub(super) fn exit(&mut self, exit: &Exit) -> io::Result<()> {
        if self.chunk.is_none() {
            let mut line = Line::default();
            line.exit(self.pid, 0, exit);
            return self.line(&line);
        }
        let mut words = vec![0];
        let first = fxt::write::exit(exit, &mut words);
        self.record_of(first, words)
    }

    /// Ends the trace as the process does that ends normally.
    pub(super) fn end(mut self, end: &End) -> io::Result<()> {
        if self.chunk.is_none() {
            self.file.write_all(end.bytes().unwrap_or_default())?;
        } else {
            let mut words = vec![0];
            let first = fxt::write::footer(end.args().unwrap_or_default(), &mut words);
            self.record_of(first, words)?;
            self.flush_chunk()?;
        }
        self.file.flush()
    }

    /// Ends the trace as if the process was killed: there is room after the last record.
    pub(super) fn kill(mut self) -> io::Result<()> {
        if self.chunk.is_none() {
            self.file.write_all(&vec![b' '; AHEAD])?;
        } else {
            self.flush_chunk()?;
            self.file.write_all(&UNWRITTEN.to_le_bytes().repeat(AHEAD / 8))?;
        }
        self.file.flush()
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        self.file.write_all(line.bytes().unwrap_or_default())
    }

    /// Writes a record whose first word is known last.
    fn record_of(&mut self, first: Option<u64>, mut words: Vec<u64>) -> io::Result<()> {
        if let (Some(first), Some(place)) = (first, words.first_mut()) {
            *place = first;
        }
        self.words(&words)
    }

    /// Adds words to the chunk, or to a new one if they do not fit.
    fn words(&mut self, words: &[u64]) -> io::Result<()> {
        if self.chunk.as_ref().is_some_and(|chunk| chunk.len() + words.len() > CHUNK) {
            self.flush_chunk()?;
            let next = [&fxt::write::head(0)[..], &fxt::write::thread(self.pid, self.pid)].concat();
            self.chunk = Some(next);
        }
        self.chunk.iter_mut().for_each(|chunk| chunk.extend(words));
        Ok(())
    }

    fn flush_chunk(&mut self) -> io::Result<()> {
        let mut chunk = self.chunk.take().unwrap_or_default();
        chunk.resize(CHUNK, UNWRITTEN);
        chunk.iter().try_for_each(|word| self.file.write_all(&word.to_le_bytes()))
    }
}
