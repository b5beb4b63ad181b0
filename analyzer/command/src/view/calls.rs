//! The table of the calls of a run: small enough to keep in memory, and fast to search.

use super::shared_list::SharedList;
use urscope_analyzer::{lifetimes::FinishedCall, questions::Searched};
use urscope_schema::api::{Function, ResultCode};

/// How many calls are kept. Later calls are omitted, and [`CallTable::limit`] reports that.
pub(super) const MOST_CALLS: usize = 5_000_000;

/// Marks a time or a size that is absent.
const NONE: u64 = u64::MAX;

/// One call, in 64 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) from: u64,
    took: u64,
    pub(super) number: u64,
    /// The object that the call is about; 0 if unknown.
    value: u64,
    size: u64,
    fingerprint: u64,
    pub(super) process: u32,
    pub(super) tid: u32,
    result: u32,
    pub(super) function: Function,
    /// The number of the call stack; 0 if unknown. A trace has no more than this can hold.
    stack: u16,
}

impl Row {
    /// The row of a call.
    pub(super) fn from_call(call: &FinishedCall<'_>) -> Self {
        let FinishedCall { asked, answered, .. } = *call;
        let took = call.to.map(|to| to.saturating_sub(call.from));
        Self {
            from: call.from,
            took: took.filter(|_| call.result.is_some()).unwrap_or(NONE),
            number: call.number,
            value: answered.subject().or(asked.subject()).unwrap_or_default(),
            size: answered.size.or(asked.size).unwrap_or(NONE),
            fingerprint: call.fingerprint.unwrap_or_default(),
            process: call.process,
            tid: call.tid,
            result: call.result.unwrap_or(ResultCode::SUCCESS).0,
            function: call.function,
            stack: asked.stack.and_then(|stack| stack.try_into().ok()).unwrap_or_default(),
        }
    }

    /// The duration in nanoseconds; `None` if the call never returned.
    pub(super) fn took(&self) -> Option<u64> {
        (self.took != NONE).then_some(self.took)
    }

    pub(super) fn value(&self) -> Option<u64> {
        (self.value != 0).then_some(self.value)
    }

    pub(super) fn stack(&self) -> Option<u64> {
        (self.stack != 0).then_some(self.stack.into())
    }

    pub(super) fn size(&self) -> Option<u64> {
        (self.size != NONE).then_some(self.size)
    }
}

impl Searched for Row {
    fn process(&self) -> u32 {
        self.process
    }

    fn function(&self) -> Function {
        self.function
    }

    fn span(&self) -> (u64, Option<u64>) {
        (self.from, self.took().map(|took| self.from.saturating_add(took)))
    }

    fn result(&self) -> Option<ResultCode> {
        self.took().map(|_| ResultCode(self.result))
    }

    fn shares(&self) -> bool {
        // An allocation has a fingerprint if it imports.
        self.function.is_ipc() || self.function.may_import() && self.fingerprint().is_some()
    }

    fn names(&self, handle: u64) -> bool {
        [self.value(), self.fingerprint()].contains(&Some(handle))
    }

    fn fingerprint(&self) -> Option<u64> {
        (self.fingerprint != 0).then_some(self.fingerprint)
    }
}

#[derive(Clone, Debug)]
pub(super) struct CallTable {
    /// The calls that are kept, in the order in which they began.
    pub(super) rows: SharedList<Row>,
    /// The number of all calls, including those that are not kept.
    pub(super) total: u64,
    most: usize,
}

impl CallTable {
    /// A table that keeps at most that many calls.
    pub(super) fn new(most: usize) -> Self {
        Self { rows: SharedList::default(), total: 0, most }
    }

    /// Adds a call if the table is not full.
    pub(super) fn put(&mut self, row: Row) {
        self.total += 1;
        if self.rows.len() < self.most {
            // Calls arrive in the order of their returns, which is nearly that of their begins.
            self.rows.insert(row, |row| (row.from, row.process, row.number));
        }
    }

    /// A message if calls were omitted.
    pub(super) fn limit(&self) -> Option<String> {
        let kept = self.rows.len() as u64;
        (self.total > kept).then(|| {
            format!("the table of calls holds the first {kept} of {}; `urscope export` has all of them", self.total)
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use urscope_schema::call::Values;

    use super::*;

    /// A call of a process, which has not returned.
    pub(in super::super) fn begun(function: Function, asked: &Values) -> FinishedCall<'_> {
        let process = 0;
        let tid = 1;
        let number = 2;
        let from = 3;
        let to = None;
        let result = None;
        let answered = const { &Values::NONE };
        FinishedCall {
            process,
            tid,
            number,
            function,
            from,
            to,
            result,
            asked,
            answered,
            made: None,
            of: None,
            ended: &[],
            fingerprint: None,
        }
    }

    #[test]
    fn a_call_takes_little_memory() {
        assert_eq!(size_of::<Row>(), 64);
    }

    #[test]
    fn unknown_values_are_none() {
        let known = |row: Row| (row.took(), row.result(), row.value(), row.size(), row.fingerprint());
        let unreturned = begun(Function::urUSMFree, &Values::NONE);
        assert_eq!(known(Row::from_call(&unreturned)), (None, None, None, None, None));
        let asked = Values { pointer: Some(7), size: Some(0), ..Values::NONE };
        let to = Some(3);
        let result = Some(ResultCode(44));
        let returned = FinishedCall { to, result, asked: &asked, fingerprint: Some(9), ..unreturned };
        assert_eq!(known(Row::from_call(&returned)), (Some(0), Some(ResultCode(44)), Some(7), Some(0), Some(9)));
    }
}
