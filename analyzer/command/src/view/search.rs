//! Searches the table of calls: filters, sort orders, and pages of results.

use std::{collections::HashMap, sync::Arc};

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use urscope_analyzer::analysis::{CallSite, ProcessSummary, file_name};
use urscope_analyzer::questions::{CallFilter, Searched as _, word};
use urscope_schema::api::{Function, ResultCode};

use super::calls::{CallTable, Row};
use super::{answers::Refusal, shared_list::SharedList};

/// The default number of rows of a page.
const PAGE: usize = 200;

/// The maximum number of rows of a page.
pub(super) const LONGEST_PAGE: usize = 5000;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    offset: usize,
    limit: Option<usize>,
    #[serde(flatten)]
    pub(super) rows: Wanted,
    /// A call, as `PROCESS:CALL`, that the page is centered on.
    around: Option<String>,
}

/// The filters and the sort order. Empty texts are unset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Wanted {
    sort: Sort,
    desc: String,
    q: String,
    function: String,
    process: String,
    errors: String,
    ipc: String,
    from_ns: String,
    to_ns: String,
    fingerprint: String,
}

/// The sort key. Rows with equal keys are sorted by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Sort {
    /// The begin of the call.
    #[default]
    Time,
    Function,
    Process,
    /// The duration. Calls that never returned are the longest.
    Took,
    Result,
}

#[derive(Debug, Serialize)]
pub(super) struct Page {
    generation: u64,
    total: u64,
    matching: usize,
    offset: usize,
    rows: Vec<Shown>,
}

/// A row of a page, as JSON.
#[derive(Debug, Serialize)]
struct Shown {
    process: u32,
    tid: u32,
    call: u64,
    function: &'static str,
    from_ns: u64,
    took_ns: Option<u64>,
    result: Option<String>,
    value: Option<String>,
    size: Option<u64>,
    fingerprint: Option<String>,
    site: Option<String>,
}

impl Asked {
    /// The longest page of all calls that begins there.
    pub(super) fn part(offset: usize) -> Self {
        Self { offset, limit: Some(LONGEST_PAGE), ..Self::default() }
    }

    /// Resolves `around`: the page shows only the process of that call, in order of time. Returns the call's number.
    pub(super) fn settle(mut self) -> Result<(Self, Option<u64>), Refusal> {
        let Some(around) = self.around.take() else { return Ok((self, None)) };
        let parsed =
            around.split_once(':').and_then(|(process, call)| Some((process.parse::<u32>().ok()?, call.parse().ok()?)));
        let (process, call) =
            parsed.ok_or_else(|| Refusal::meaningless(format!("expected around=PROCESS:CALL, found {around}")))?;
        self.rows.process = process.to_string();
        (self.rows.sort, self.rows.desc) = (Sort::Time, String::new());
        Ok((self, Some(call)))
    }

    pub(super) fn page(
        &self,
        generation: u64,
        calls: &CallTable,
        found: &[u32],
        around: Option<u64>,
        mut site: impl FnMut(&Row) -> Option<String>,
    ) -> Result<Page, Refusal> {
        let limit = self.limit.unwrap_or(PAGE).min(LONGEST_PAGE);
        let row = |index: &u32| calls.rows.get(*index as usize);
        let offset = match around {
            Some(call) => {
                let place = found.iter().position(|index| row(index).is_some_and(|row| row.number == call));
                let process = &self.rows.process;
                let none =
                    || Refusal(StatusCode::NOT_FOUND, format!("the table has no call {call} of process {process}"));
                // The last page has as many rows as the others.
                place.ok_or_else(none)?.saturating_sub(limit / 2).min(found.len().saturating_sub(limit))
            }
            None => self.offset.min(found.len()),
        };
        let shown =
            found.iter().skip(offset).take(limit).filter_map(row).map(|row| Shown::from_row(row, site(row))).collect();
        Ok(Page { generation, total: calls.total, matching: found.len(), offset, rows: shown })
    }
}

impl Shown {
    fn from_row(row: &Row, site: Option<String>) -> Self {
        let hex = |value: u64| format!("{value:#x}");
        Self {
            process: row.process,
            tid: row.tid,
            call: row.number,
            function: row.function.name(),
            from_ns: row.from,
            took_ns: row.took(),
            result: row.result().map(|result| result.text_of(row.function)),
            value: row.value().map(hex),
            size: row.size(),
            fingerprint: row.fingerprint().map(hex),
            site,
        }
    }
}

impl Wanted {
    /// Finds the indices of matching rows, in the requested order. `rows` are in order of time. `site` looks up the
    /// call site of a row.
    pub(super) fn find(
        &self,
        rows: &SharedList<Row>,
        processes: &[ProcessSummary],
        mut site: impl FnMut(&Row) -> Option<Arc<CallSite>>,
    ) -> Result<Vec<u32>, Refusal> {
        let number = |name: &str, text: &str| match text {
            "" => Ok(None),
            _ => text.parse::<u64>().map(Some).map_err(|_| format!("expected a number as {name}, found {text}")),
        };
        let set = |text: &String| Some(text).filter(|text| !text.is_empty()).cloned();
        let filter = || -> Result<_, String> {
            Ok(CallFilter {
                ipc: is_set(&self.ipc),
                process: number("process", &self.process)?,
                function: set(&self.function),
                fingerprint: set(&self.fingerprint).map(|text| word(&text)).transpose()?,
                errors: is_set(&self.errors),
                from_ns: number("from_ns", &self.from_ns)?,
                to_ns: number("to_ns", &self.to_ns)?,
                ..CallFilter::default()
            })
        };
        let filter = filter().map_err(Refusal::meaningless)?;
        let mut words = Words::new(&self.q, processes);
        let candidates = (0..).zip(rows.iter_from(0)).filter(|(_, row)| filter.wants(*row));
        let mut found: Vec<u32> =
            candidates.filter(|(_, row)| words.fit(row, &mut site)).map(|(index, _)| index).collect();
        self.put_in_order(rows, &mut found);
        Ok(found)
    }

    fn put_in_order(&self, rows: &SharedList<Row>, found: &mut [u32]) {
        let ranks = {
            let mut names: Vec<_> = Function::ALL.iter().enumerate().collect();
            names.sort_by_key(|(_, function)| function.name());
            let mut ranks = vec![0; names.len()];
            for (rank, (function, _)) in (0_u64..).zip(names) {
                if let Some(place) = ranks.get_mut(function) {
                    *place = rank;
                }
            }
            ranks
        };
        let key = |row: &Row| match self.sort {
            Sort::Time => row.from,
            Sort::Function => ranks.get(row.function as usize).copied().unwrap_or_default(),
            Sort::Process => u64::from(row.process),
            Sort::Took => row.took().unwrap_or(u64::MAX),
            Sort::Result => row.result().map_or(u64::MAX, |ResultCode(code)| u64::from(code)),
        };
        let key = |index: &u32| rows.get(*index as usize).map(key);
        match (self.sort, is_set(&self.desc)) {
            (Sort::Time, false) => {}
            (Sort::Time, true) => found.reverse(),
            (_, false) => found.sort_by_key(key),
            (_, true) => found.sort_by_key(|index| std::cmp::Reverse(key(index))),
        }
    }
}

fn is_set(flag: &str) -> bool {
    !matches!(flag, "" | "0" | "false")
}

/// A search text: it matches names of functions, results and programs, call sites, and digits of numbers.
struct Words {
    text: String,
    functions: Vec<bool>,
    processes: Vec<bool>,
    results: HashMap<(Function, Option<ResultCode>), bool>,
    /// The call sites, by process and stack.
    sites: HashMap<(u32, Option<u64>), bool>,
    digits: Option<Digits>,
    number: Option<u64>,
}

impl Words {
    fn new(text: &str, processes: &[ProcessSummary]) -> Self {
        let text = text.trim().to_ascii_lowercase();
        let has = |name: &str| name.to_ascii_lowercase().contains(&text);
        let functions = Function::ALL.iter().map(|function| has(function.name())).collect();
        let of = |seen: &ProcessSummary| {
            let file = file_name(&seen.executable);
            has(file) || seen.pid.to_string() == text || seen.rank.is_some_and(|rank| text == format!("rank {rank}"))
        };
        let processes = processes.iter().map(of).collect();
        let digits = Digits::parse(&text);
        let number = text.parse().ok();
        Self { text, functions, processes, results: HashMap::new(), sites: HashMap::new(), digits, number }
    }

    fn fit(&mut self, row: &Row, site: &mut impl FnMut(&Row) -> Option<Arc<CallSite>>) -> bool {
        if self.text.is_empty() {
            return true;
        }
        let known = |table: &[bool], index: usize| table.get(index).is_some_and(|fits| *fits);
        let result = row.result();
        let text = &self.text;
        let fits = |result: Option<ResultCode>| {
            result
                .map_or("never returned".into(), |result| result.text_of(row.function))
                .to_ascii_lowercase()
                .contains(text)
        };
        known(&self.functions, row.function as usize)
            || known(&self.processes, row.process as usize)
            || *self.results.entry((row.function, result)).or_insert_with(|| fits(result))
            || self.number.is_some_and(|number| {
                number == u64::from(row.tid) || number == row.number || Some(number) == row.size()
            })
            || self.digits.is_some_and(|digits| {
                [row.value(), row.fingerprint()].into_iter().flatten().any(|value| digits.are_in(value))
            })
            || *self
                .sites
                .entry((row.process, row.stack()))
                .or_insert_with(|| site(row).is_some_and(|site| site.name.to_ascii_lowercase().contains(text)))
    }
}

/// Hexadecimal digits that a number may contain.
#[derive(Clone, Copy, Debug)]
struct Digits {
    value: u64,
    count: u32,
    /// The number has to begin with them.
    first: bool,
}

impl Digits {
    fn parse(text: &str) -> Option<Self> {
        let (digits, first) = text.strip_prefix("0x").map_or((text, false), |digits| (digits, true));
        let value =
            u64::from_str_radix(digits, 16).ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        Some(Self { value, count: digits.len() as u32, first })
    }

    fn are_in(self, number: u64) -> bool {
        let length = (u64::BITS - number.leading_zeros()).div_ceil(4).max(1);
        let Some(most) = length.checked_sub(self.count) else { return false };
        let mask = u64::MAX >> (u64::BITS - 4 * self.count);
        let least = if self.first { most } else { 0 };
        (least..=most).any(|place| (number >> (4 * place)) & mask == self.value)
    }
}

#[cfg(test)]
mod tests {
    use urscope_analyzer::lifetimes::FinishedCall;
    use urscope_schema::call::Values;

    use super::super::calls::{MOST_CALLS, tests::begun};
    use super::*;

    #[test]
    fn digits_match_as_in_hexadecimal_text() {
        for number in [0, 7, 0x7f00_1234, 0xa3ba_b144_fd8c_6355, u64::MAX] {
            let texts = "0 7 00 12 7f0 0x7f 0x12 a3bab144fd8c6355 0xa3bab144fd8c6355 6355 0x6355 fff";
            for text in texts.split(' ') {
                let found = Digits::parse(text).unwrap().are_in(number);
                let written = format!("{number:#x}");
                let expected =
                    if text.starts_with("0x") { written.starts_with(text) } else { written[2..].contains(text) };
                assert_eq!(found, expected, "{text} in {written}");
            }
        }
        for text in ["", "0x", "xyz", "+7", "00000000000000000"] {
            assert!(Digits::parse(text).is_none_or(|digits| !digits.are_in(1)), "{text}");
        }
    }

    fn rows() -> CallTable {
        let row = |process, number, function, from, took: Option<u64>, result: Option<u32>, pointer| {
            let asked = Values { pointer: Some(pointer), ..Values::NONE };
            let tid = 70 + process;
            let to = took.map(|took| from + took);
            let result = result.map(ResultCode);
            let fingerprint = Some(pointer * 16);
            Row::from_call(&FinishedCall {
                process,
                tid,
                number,
                from,
                to,
                result,
                fingerprint,
                ..begun(function, &asked)
            })
        };
        let mut calls = CallTable::new(MOST_CALLS);
        let rows = [
            row(0, 1, Function::urUSMFree, 10, Some(5), Some(0), 0x7f01),
            row(1, 1, Function::urIPCGetMemHandleExp, 20, Some(50), Some(44), 0x7f02),
            row(0, 2, Function::urIPCPutMemHandleExp, 30, None, None, 0x7f03),
            row(0, 3, Function::urIPCGetMemHandleExp, 40, Some(1), Some(0), 0x7f04),
        ];
        for row in rows {
            calls.put(row);
        }
        calls
    }

    fn asked(query: &str) -> Asked {
        let uri = format!("http://x/?{query}").parse().unwrap();
        axum::extract::Query::try_from_uri(&uri).unwrap().0
    }

    /// The calls that a query finds, as process and number.
    fn found(query: &str) -> Vec<(u32, u64)> {
        let rows = rows();
        let (asked, around) = asked(query).settle().unwrap();
        let page =
            asked.page(1, &rows, &asked.rows.find(&rows.rows, &[], |_| None).unwrap(), around, |_| None).unwrap();
        page.rows.iter().map(|row| (row.process, row.call)).collect()
    }

    #[test]
    fn rows_are_filtered() {
        assert_eq!(found(""), [(0, 1), (1, 1), (0, 2), (0, 3)]);
        assert_eq!(found("process=1"), [(1, 1)]);
        assert_eq!(found("function=urIPCGetMemHandleExp&process=0"), [(0, 3)]);
        assert_eq!(found("errors=1"), [(1, 1), (0, 2)], "a call that never returned counts as an error");
        assert_eq!(found("ipc=1&errors=0"), [(1, 1), (0, 2), (0, 3)]);
        assert_eq!(found("from_ns=35&to_ns=35"), [(1, 1), (0, 2)], "calls that were running");
        assert_eq!(found("fingerprint=0x7f040"), [(0, 3)]);
        assert_eq!(found("q=GETmem"), [(1, 1), (0, 3)]);
        assert_eq!(found("q=0x7f03"), [(0, 2)]);
        assert_eq!(found("q=unsupported"), [(1, 1)]);
        assert_eq!(found("q=never"), [(0, 2)]);
        assert_eq!(found("q=71"), [(1, 1)]);
    }

    #[test]
    fn rows_are_sorted_and_equal_keys_are_sorted_by_time() {
        assert_eq!(found("desc=1"), [(0, 3), (0, 2), (1, 1), (0, 1)]);
        assert_eq!(found("sort=took"), [(0, 3), (0, 1), (1, 1), (0, 2)]);
        assert_eq!(found("sort=function"), [(1, 1), (0, 3), (0, 2), (0, 1)]);
        assert_eq!(found("sort=process&desc=1"), [(1, 1), (0, 1), (0, 2), (0, 3)]);
        assert_eq!(found("sort=result"), [(0, 1), (0, 3), (1, 1), (0, 2)]);
    }

    #[test]
    fn pages_contain_the_requested_rows() {
        assert_eq!(found("offset=1&limit=2"), [(1, 1), (0, 2)]);
        assert_eq!(found("offset=9"), []);
        assert_eq!(found("around=0:2&limit=1"), [(0, 2)]);
        assert_eq!(found("around=0:3&limit=2&sort=took&desc=1"), [(0, 2), (0, 3)]);
        assert_eq!(found("around=0:1"), [(0, 1), (0, 2), (0, 3)]);
    }

    #[test]
    fn malformed_queries_are_refused() {
        let rows = rows();
        assert_eq!(asked("around=x").settle().unwrap_err().0, StatusCode::BAD_REQUEST);
        for query in ["process=x", "fingerprint=x"] {
            assert_eq!(
                asked(query).rows.find(&rows.rows, &[], |_| None).unwrap_err().0,
                StatusCode::BAD_REQUEST,
                "{query}"
            );
        }
        let (nowhere, around) = asked("around=0:9").settle().unwrap();
        let found = nowhere.rows.find(&rows.rows, &[], |_| None).unwrap();
        assert_eq!(nowhere.page(1, &rows, &found, around, |_| None).unwrap_err().0, StatusCode::NOT_FOUND);
    }
}
