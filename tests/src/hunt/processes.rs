//! The processes of a draft: how they start and end, and their contexts.

use super::draft::{Draft, Id, Node, Place, Process, first_word};

/// A process and how it comes and goes.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) parent: Option<Process>,
    pub(super) start: Option<Id>,
    pub(super) threads: usize,
    pub(super) contexts: Vec<Option<Id>>,
    pub(super) end: &'static str,
    /// A copy of its parent. It cannot use the device.
    pub(super) is_fork: bool,
    /// The process that it becomes by exec, and the step.
    pub(super) becomes: Option<(Process, Id)>,
    /// Its last step, or that of the process that it becomes.
    pub(super) ended: Option<Id>,
}

impl Draft {
    /// A new process, which process 0 starts.
    pub(super) fn spawn(&mut self) -> Process {
        self.enter(Some(0), None)
    }

    /// Whether one of two processes becomes the other.
    pub(super) fn is_one(&self, one: Process, other: Process) -> bool {
        let becomes = |from: Process, to: Process| self.lives[from].becomes.is_some_and(|(next, _)| next == to);
        becomes(one, other) || becomes(other, one)
    }

    /// A process that begins at a step.
    pub(super) fn enter(&mut self, parent: Option<Process>, start: Option<Id>) -> Process {
        let threads = self.random.choose(&[1, 1, 2, 3]);
        let contexts = vec![None; self.random.choose(&[1, 1, 2])];
        self.lives.push(Life {
            parent,
            start,
            threads,
            contexts,
            end: "exit",
            is_fork: false,
            becomes: None,
            ended: None,
        });
        self.lives.len() - 1
    }

    /// The number of processes so far.
    pub(super) fn processes(&self) -> usize {
        self.lives.len()
    }

    /// A new process that is a copy of another, and the fork.
    pub(super) fn fork(&mut self, of: &Place, after: &[Id]) -> Place {
        let child = self.lives.len();
        let start = self.add(of.process, format!("fork p{child}"), after);
        let child = self.enter(Some(of.process), Some(start));
        self.lives[child].threads = 1;
        self.lives[child].is_fork = true;
        Place { process: child, ready: start, ..*of }
    }

    /// Lets a process become a new one at its end.
    pub(super) fn exec(&mut self, process: Process) -> Process {
        let next = self.lives.len();
        let step = self.add(process, format!("exec p{next}"), &[]);
        let next = self.enter(self.lives[process].parent, Some(step));
        self.lives[process].becomes = Some((next, step));
        next
    }

    /// Whether a process can end early and be waited for: it was started by another, and stays what it is.
    pub(super) fn is_plain_child(&self, process: Process) -> bool {
        let life = &self.lives[process];
        life.parent == Some(0)
            && life.becomes.is_none()
            && life.end == "exit"
            && !life.is_fork
            && !self.is_next(process)
    }

    /// Whether a process came about by exec.
    fn is_next(&self, process: Process) -> bool {
        self.lives.iter().any(|other| other.becomes.is_some_and(|(next, _)| next == process))
    }

    /// The processes that can use the device: a forked child cannot.
    pub(super) fn able(&self) -> Vec<Process> {
        (0..self.lives.len()).filter(|process| !self.lives[*process].is_fork).collect()
    }

    /// The process is killed at its end.
    pub(super) fn kill(&mut self, process: Process) {
        self.lives[process].end = "killed";
    }

    /// The trace of the process cannot grow at its end, where it makes calls.
    pub(super) fn lose(&mut self, process: Process) {
        self.lives[process].end = "incomplete";
        self.expect("note calls-lost", None, None);
    }

    /// One of the contexts of a process.
    pub(super) fn place(&mut self, process: Process) -> Place {
        let context = self.random.below(self.lives[process].contexts.len());
        self.place_in(process, context)
    }

    /// A context of the same process that is another one.
    pub(super) fn other_place(&mut self, place: &Place) -> Place {
        if self.lives[place.process].contexts.len() == 1 {
            self.lives[place.process].contexts.push(None);
        }
        let count = self.lives[place.process].contexts.len();
        self.place_in(place.process, (place.context + 1) % count)
    }

    /// A context that nothing else uses.
    pub(super) fn fresh_place(&mut self, process: Process) -> Place {
        let context = 100 + self.register();
        let ready = self.add(process, format!("context c{context}"), &[]);
        Place { process, context, ready }
    }

    /// Drops a context after all steps of its process since another one.
    pub(super) fn drop_place(&mut self, place: &Place, since: Id) {
        let steps = self.nodes.iter().enumerate().skip(since.0).filter(|(_, node)| node.process == place.process);
        let steps: Vec<Id> = steps.map(|(index, _)| Id(index)).collect();
        self.add(place.process, format!("release c{}", place.context), &steps);
    }

    fn place_in(&mut self, process: Process, context: usize) -> Place {
        let ready = self.lives[process].contexts[context].unwrap_or_else(|| {
            let made = self.add(process, format!("context c{context}"), &[]);
            self.lives[process].contexts[context] = Some(made);
            made
        });
        Place { process, context, ready }
    }

    /// A step must come when the end of a process is known.
    pub(super) fn after_end(&mut self, step: Id, of: Process) {
        self.ends.push((step, of));
    }

    /// Adds the ends of all processes.
    pub(super) fn close(&mut self) {
        // A process that becomes a program without any call counts as killed, so what it left would not be reported.
        let next: Vec<Process> = (0..self.lives.len()).filter(|process| self.is_next(*process)).collect();
        for process in next {
            self.place(process);
        }
        for process in (0..self.lives.len()).rev() {
            self.end(process);
        }
        for (step, process) in std::mem::take(&mut self.ends) {
            let ended = self.lives[process].ended.expect("every process has an end");
            self.order(ended, step);
        }
    }

    fn end(&mut self, process: Process) {
        let of_process = |draft: &Self, last: bool| -> Vec<Id> {
            let nodes = draft.nodes.iter().enumerate();
            let own = nodes
                .filter(|(_, node)| node.process == process && first_word(&node.step) != "exec" && node.last <= last);
            let children = draft.lives.iter().filter(|life| life.parent == Some(process)).filter_map(|life| life.ended);
            own.map(|(index, _)| Id(index)).chain(children).collect()
        };
        let lasting = of_process(self, false);
        for node in &mut self.nodes {
            if node.process == process && node.last {
                node.after.extend(&lasting);
            }
        }
        let before_contexts = of_process(self, true);
        let life = self.lives[process].clone();
        if life.end == "exit" && !life.is_fork {
            for (context, made) in life.contexts.iter().enumerate() {
                if made.is_some() && self.random.one_in(2) {
                    self.add(process, format!("release c{context}"), &before_contexts);
                }
            }
        }
        let all = of_process(self, true);
        let ended = match life.becomes {
            Some((next, step)) => {
                self.nodes[step.0].after.extend(&all);
                // The process that it has become ended before, because its number is higher.
                let of_next = |node: &Node| node.process == next && matches!(first_word(&node.step), "exit" | "exec");
                Id(self.nodes.iter().rposition(of_next).expect("every process has an end"))
            }
            None => self.add(process, life.end.to_owned(), &all),
        };
        self.lives[process].ended = Some(ended);
    }
}
