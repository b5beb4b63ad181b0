//! Composes a program of correct exchanges, and one that has a mistake if that is asked for.

use std::{fs, path::Path};

use super::draft::{Draft, Id, Place, Process};
use super::sharing::{Kind, Sharing};
use super::{Stage, expectation::Expectation, mistake::Mistake, plant::plant, random::Random, schedule};

/// A program for the interpreter, and what must be found in it.
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) again: String,
    pub(super) stage: Stage,
    pub(super) script: String,
    pub(super) expected: Vec<Expectation>,
}

impl Program {
    /// The mistake that belongs to a seed: none in every third.
    pub fn mistake_of(seed: u64, stage: Stage) -> Option<Mistake> {
        let mistakes = Mistake::on(stage);
        let mut random = Random::new(!seed);
        (!random.one_in(3)).then(|| random.choose(&mistakes))
    }

    /// The program of a seed, without a mistake or with one.
    pub fn new(seed: u64, stage: Stage, mistake: Option<Mistake>) -> Self {
        let mut draft = Draft::new(seed, stage);
        if draft.random.one_in(4) {
            let last = draft.processes() - 1;
            draft.exec(last);
        }
        draft.without_events = mistake.is_some_and(Mistake::is_of_a_queue);
        for _ in 0..draft.random.choose(&[1, 2, 2, 3]) {
            correct_sharing(&mut draft);
        }
        if draft.random.one_in(3) {
            unshared_memory(&mut draft);
        }
        let children: Vec<Process> =
            draft.able().into_iter().filter(|process| draft.is_plain_child(*process)).collect();
        if mistake.is_none() && !children.is_empty() && draft.random.one_in(5) {
            let ended = draft.random.choose(&children);
            if draft.random.one_in(2) {
                draft.kill(ended);
            } else {
                draft.lose(ended);
            }
        }
        if let Some(mistake) = mistake {
            faulty_sharing(&mut draft, mistake);
        }
        draft.close();
        let (script, lines) = schedule::script(&mut draft);
        let again = format!("1 {seed} {stage} {}", mistake.map_or("correct", Mistake::name));
        let expected = draft.expected.iter().map(|expected| expected.at_lines(|step| lines.get(&step).copied()));
        Self { again, stage, script, expected: expected.collect() }
    }

    /// The arguments of `scripts/hunt` that run it again.
    pub fn again(&self) -> &str {
        &self.again
    }

    /// The stage that it is for.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// A script from a file, with the lines that `Program::text` begins with.
    pub fn of_file(file: &Path, stage: Stage) -> Self {
        let script =
            fs::read_to_string(file).unwrap_or_else(|error| panic!("{} cannot be read: {error}", file.display()));
        let expected = script.lines().filter_map(Expectation::parse).collect();
        Self { again: format!("{} {stage}", file.display()), stage, script, expected }
    }
}

/// One or two exchanges of one kind. The second may get the address of the first.
fn correct_sharing(draft: &mut Draft) {
    let kinds = [
        Kind::Pooled,
        Kind::Pooled,
        Kind::Unpooled,
        Kind::Queued,
        Kind::FromPool,
        Kind::Raw,
        Kind::Physical,
        Kind::Event,
    ];
    let is_allowed = |kind: &Kind| kind.is_on(draft.stage) && !(draft.without_events && *kind == Kind::Event);
    let kinds: Vec<Kind> = kinds.into_iter().filter(is_allowed).collect();
    let kind = draft.random.choose(&kinds);
    let processes = draft.able();
    let owner = draft.random.choose(&processes);
    // A process that another one becomes starts when that has ended.
    let others: Vec<Process> =
        processes.into_iter().filter(|process| *process != owner && !draft.is_one(*process, owner)).collect();
    let count = 1 + draft.random.below(3);
    let openers: Vec<Process> = (0..count).map(|_| draft.random.choose(&others)).collect();
    if openers.iter().any(|one| openers.iter().any(|other| one != other && draft.is_one(*one, *other))) {
        return correct_sharing(draft);
    }
    let since = Id(draft.nodes.len());
    let forwarded = draft.random.one_in(4).then(|| openers[draft.random.below(openers.len())]);
    let (owner, owner_is_fresh) = maybe_fresh(draft, owner);
    let (openers, fresh): (Vec<Place>, Vec<bool>) =
        openers.into_iter().map(|opener| maybe_fresh(draft, opener)).unzip();
    let mut sharing = Sharing::new(draft, kind, owner, &openers, &[]);
    if let Some(process) = forwarded {
        let to = draft.place(process);
        match kind {
            kind if kind.has_parts() && draft.random.one_in(2) => sharing.share_part(draft, to),
            Kind::Physical if draft.random.one_in(2) => sharing.share_on(draft, to),
            _ => sharing.open(draft, to, None),
        }
    }
    if draft.random.one_in(5) {
        child_puts(draft, &sharing);
    }
    if kind.is_memory() && kind != Kind::FromPool && draft.random.one_in(3) {
        let again = Sharing::new(draft, kind, owner, &openers, &[sharing.end]);
        let step = &mut draft.nodes[again.make.0].step;
        *step = step.replace(&format!(" {} ", again.size), &format!(" {} ", sharing.size));
    }
    for (place, is_fresh) in openers.iter().zip(fresh).chain([(&owner, owner_is_fresh)]) {
        if is_fresh {
            draft.drop_place(place, since);
        }
    }
}

/// Host and shared USM, which one process uses alone.
fn unshared_memory(draft: &mut Draft) {
    let processes = draft.able();
    let process = draft.random.choose(&processes);
    let place = draft.place(process);
    let memory = draft.register();
    let context = place.context;
    let usm = draft.random.choose(&["host", "shared"]);
    let size = draft.random.choose(&[4096, 5 << 20]);
    let seed = draft.random.below(1000);
    let make = draft.add(process, format!("alloc m{memory} {size} as {usm} in c{context}"), &[place.ready]);
    let write = draft.add(process, format!("write m{memory} seed {seed} in c{context}"), &[make]);
    let compare = draft.add(process, format!("compare m{memory} seed {seed} in c{context}"), &[write]);
    draft.add(process, format!("free m{memory} in c{context}"), &[compare]);
}

/// A context of the process, and whether it is one that only this exchange uses, and that is dropped behind it.
fn maybe_fresh(draft: &mut Draft, process: Process) -> (Place, bool) {
    let is_fresh = draft.random.one_in(5);
    (if is_fresh { draft.fresh_place(process) } else { draft.place(process) }, is_fresh)
}

/// A forked child has a copy of the handle data, which it may put as well.
fn child_puts(draft: &mut Draft, sharing: &Sharing) {
    // Level Zero does not work in a forked child.
    if matches!(sharing.kind, Kind::Event | Kind::Raw) {
        return;
    }
    let got = sharing.last_got();
    let child = draft.fork(&sharing.owner, &[got.get]);
    draft.order(child.ready, got.put);
    draft.add(child.process, sharing.kind.put(got.handle, child.context), &[]);
}

fn faulty_sharing(draft: &mut Draft, mistake: Mistake) {
    let kind = draft.random.choose(&mistake.kinds(draft.stage));
    let children: Vec<Process> = (0..draft.processes()).filter(|process| draft.is_plain_child(*process)).collect();
    // The last child may have become another process.
    let by_address = matches!(mistake, Mistake::ExportOfImport | Mistake::UseAfterClose);
    let child = if children.is_empty() { draft.spawn() } else { draft.random.choose(&children) };
    let owned_by_child = matches!(mistake, Mistake::OwnerEnds | Mistake::LeakedByExec);
    let opened_by_child = needs_child(mistake) || by_address;
    let by_child = owned_by_child || !opened_by_child && draft.random.one_in(2);
    let (owner, opener) = if by_child { (child, 0) } else { (0, child) };
    let more: Vec<Process> = children.into_iter().filter(|other| *other != child).collect();
    let since = Id(draft.nodes.len());
    let owner = draft.place(owner);
    let (opener, is_fresh) =
        if drops_its_context(mistake) { maybe_fresh(draft, opener) } else { (draft.place(opener), false) };
    let mut openers = vec![opener];
    for other in more {
        if draft.random.one_in(2) {
            openers.push(draft.place(other));
        }
    }
    let sharing = Sharing::new(draft, kind, owner, &openers, &[]);
    plant(draft, &sharing, mistake);
    if is_fresh {
        draft.drop_place(&opener, since);
    }
}

/// What the opener leaves open is found at the end of its context.
fn drops_its_context(mistake: Mistake) -> bool {
    matches!(
        mistake,
        Mistake::LeakedMapping
            | Mistake::ClosedOnceOfTwo
            | Mistake::LeakedPhysicalMemory
            | Mistake::LeakedEvent
            | Mistake::FreedWhileOpen
    )
}

/// The mistake ends the opener.
fn needs_child(mistake: Mistake) -> bool {
    matches!(mistake, Mistake::LeakedMapping | Mistake::ClosedOnceOfTwo | Mistake::KilledHolder)
}
