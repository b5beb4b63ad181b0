//! Runs a thread with a signal handler that interrupts it everywhere: one execution for each set of places.
//!
//! Before each access to a cell or an atomic, and before each store into the file, the thread takes a [`step`], in
//! which the handler may run. A handler can be interrupted, too. A store to a cell is not in memory at once: the
//! compiler may move it as far as the next barrier (a fence, or an instruction in assembly), past other stores. So at
//! each interruption, the handler finds every subset of the pending stores performed. All combinations are tried in
//! order, as loom does: an execution repeats the choices of the one before, except for the last choice that has
//! another possibility.

use std::{any::Any, cell::RefCell, rc::Rc};

/// A store to a cell that has not reached memory: the compiler may move it.
pub(super) struct PendingStore {
    /// The address of the cell.
    pub(super) cell: usize,
    /// Performs it.
    pub(super) perform: Box<dyn Fn()>,
    /// What is stored.
    pub(super) value: Rc<dyn Any>,
}

/// Looks at the file as a reader could. It runs at each step.
type Reader = Rc<dyn Fn()>;

#[derive(Default)]
struct Execution {
    /// The choices: which one, and of how many.
    choices: Vec<(usize, usize)>,
    /// The number of choices that this execution has made.
    choices_made: usize,
    /// How often the handler may still interrupt.
    interruptions_left: usize,
    handler: Option<Rc<dyn Fn()>>,
    reader: Option<Reader>,
    /// The pending stores of the interrupted functions, the innermost last.
    pending: Vec<Vec<PendingStore>>,
}

thread_local! {
    static EXECUTION: RefCell<Option<Execution>> = const { RefCell::new(None) };
}

/// What an execution does: `begin` without interruptions, then `run` with them.
pub struct Model<'a> {
    /// Prepares an execution. Returns the reader.
    pub begin: &'a dyn Fn() -> Rc<dyn Fn()>,
    /// The code that is interrupted.
    pub run: &'a dyn Fn(),
    /// The signal handler.
    pub handler: Rc<dyn Fn()>,
    /// Checks the outcome.
    pub end: &'a dyn Fn(),
    /// How often the handler interrupts at most.
    pub interruptions: usize,
}

/// Whether one interruption less is tried in each execution: `scripts/models --quick`.
fn is_quick() -> bool {
    std::env::var_os("URSCOPE_MODELS").is_some_and(|share| share == "quick")
}

/// Tries all places. Panics if that takes fewer than `least` executions (a tenth with `scripts/models --quick`):
/// something is no longer interrupted then.
pub fn explore(model: &Model<'_>, least: usize) {
    let (interruptions, least) =
        if is_quick() { (model.interruptions - 1, least / 10) } else { (model.interruptions, least) };
    let executions = executions(model, interruptions);
    println!("{executions} executions");
    assert!(executions > least, "{executions}");
}

fn executions(model: &Model<'_>, interruptions: usize) -> usize {
    let mut choices = Vec::new();
    for executions in 1.. {
        let reader = (model.begin)();
        EXECUTION.set(Some(Execution {
            choices,
            interruptions_left: interruptions,
            handler: Some(Rc::clone(&model.handler)),
            reader: Some(reader),
            pending: vec![Vec::new()],
            ..Execution::default()
        }));
        (model.run)();
        barrier();
        let execution = EXECUTION.take().expect("it was set above");
        (model.end)();
        choices = execution.choices;
        while choices.last().is_some_and(|(choice, of)| choice + 1 == *of) {
            choices.pop();
        }
        match choices.last_mut() {
            Some((choice, _)) => *choice += 1,
            None => return executions,
        }
    }
    unreachable!("the numbers do not end")
}

fn with<R>(then: impl FnOnce(&mut Execution) -> R) -> Option<R> {
    EXECUTION.with_borrow_mut(|execution| execution.as_mut().map(then))
}

impl Execution {
    /// The choice of this execution among `of` possibilities.
    fn choose(&mut self, of: usize) -> usize {
        if self.choices_made == self.choices.len() {
            self.choices.push((0, of));
        }
        let (choice, known) = self.choices[self.choices_made];
        assert_eq!(known, of, "an execution repeats the one before up to its last choice");
        self.choices_made += 1;
        choice
    }
}

/// A place where the handler may interrupt, and where the reader looks.
pub(super) fn step() {
    let Some(reader) = with(|execution| execution.reader.clone()).flatten() else { return };
    reader();
    let handler = with(|execution| {
        if execution.interruptions_left == 0 || execution.choose(2) == 0 {
            return None;
        }
        execution.interruptions_left -= 1;
        // Any of the pending stores may have been performed.
        let pending = execution.pending.last_mut().expect("there is always one level");
        let mut deferred = Vec::new();
        let stores = std::mem::take(pending);
        for store in stores {
            if execution.choose(2) == 1 { (store.perform)() } else { deferred.push(store) }
        }
        *execution.pending.last_mut().expect("as above") = deferred;
        execution.pending.push(Vec::new());
        execution.handler.clone()
    });
    if let Some(Some(handler)) = handler {
        handler();
        barrier();
        with(|execution| execution.pending.pop());
    }
}

/// Performs all pending stores, in their order.
pub(super) fn barrier() {
    let stores = with(|execution| execution.pending.last_mut().map(std::mem::take)).flatten();
    for store in stores.into_iter().flatten() {
        (store.perform)();
    }
}

/// Makes a store pending, or performs it if nothing is explored. Of two stores to one cell, only the later one remains.
pub(super) fn defer(store: PendingStore) {
    let mut store = Some(store);
    with(|execution| {
        let pending = execution.pending.last_mut().expect("there is always one level");
        let store = store.take().expect("it is taken once");
        pending.retain(|other| other.cell != store.cell);
        pending.push(store);
    });
    if let Some(store) = store {
        (store.perform)();
    }
}

/// The value of the pending store to a cell, if this function made one.
pub(super) fn stored(cell: usize) -> Option<Rc<dyn Any>> {
    let of = |execution: &mut Execution| {
        let store = execution.pending.last()?.iter().find(|store| store.cell == cell)?;
        Some(Rc::clone(&store.value))
    };
    with(of).flatten()
}

/// Runs a function that no handler interrupts.
pub fn without_interruptions(then: impl FnOnce()) {
    let interruptions_left = with(|execution| std::mem::take(&mut execution.interruptions_left)).unwrap_or(0);
    then();
    with(|execution| execution.interruptions_left = interruptions_left);
}
