//! The life of one handle, as one table: states by events.
//!
//! A handle is born when the call that makes it has returned, and dies when the call that ends it begins: in between,
//! its address may already belong to a new handle of another thread, so any other choice would report correct programs.
//! The tracker keeps one state per address and moves it with [`step`]; the rules read the violation from it.
//!
//! The events that complete an ending ([`Event::Ended`], [`Event::Refused`]) belong to the life that
//! the ending was for. If a new life has begun at the address meanwhile, the tracker drops them.

/// The state of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// No life is known at the address.
    Unknown,
    /// In use.
    Alive,
    /// A call that ends it has begun and not returned.
    Dying,
    /// It was ended.
    Dead,
    /// Inherited: it was alive in the parent when this process was forked. The child may end it or not.
    Inherited,
}

/// An event at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A call has returned a new handle.
    Birth,
    /// A call begins that ends the handle.
    Ending,
    /// That call succeeded.
    Ended,
    /// That call failed.
    Refused,
}

/// The violation of an event in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Violation {
    /// An end of a handle that never lived.
    NeverLived,
    /// An end of a handle that has already ended.
    Again,
}

/// The result of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The state afterwards.
    pub next: State,
    /// What is wrong, if anything.
    pub violation: Option<Violation>,
}

/// The table.
#[rustfmt::skip]
#[allow(clippy::enum_glob_use, clippy::match_same_arms, reason = "a table is read by its rows")]
pub const fn step(state: State, event: Event) -> Step {
    use {Event::*, State::*};
    match (state, event) {
        // A birth is accepted in every state: a function that is not intercepted may have ended the earlier life.
        (_,         Birth)   => to(Alive),

        (Unknown,   Ending)  => wrong(Unknown, Violation::NeverLived),
        (Alive,     Ending)  => to(Dying),
        (Dying,     Ending)  => wrong(Dying, Violation::Again),
        (Dead,      Ending)  => wrong(Dead, Violation::Again),
        (Inherited, Ending)  => to(Inherited),

        (Unknown,   Ended)   => to(Unknown),
        // Two calls ended it at once: the one was refused, the other was not.
        (Alive,     Ended)   => to(Dead),
        (Dying,     Ended)   => to(Dead),
        (Dead,      Ended)   => to(Dead),
        (Inherited, Ended)   => to(Inherited),

        (Unknown,   Refused) => to(Unknown),
        (Alive,     Refused) => to(Alive),
        (Dying,     Refused) => to(Alive),
        (Dead,      Refused) => to(Dead),
        (Inherited, Refused) => to(Inherited),
    }
}

const fn to(next: State) -> Step {
    Step { next, violation: None }
}

const fn wrong(next: State, violation: Violation) -> Step {
    Step { next, violation: Some(violation) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(from: State, events: &[Event]) -> (State, Vec<Violation>) {
        let mut violations = Vec::new();
        let state = events.iter().fold(from, |state, event| {
            let step = step(state, *event);
            violations.extend(step.violation);
            step.next
        });
        (state, violations)
    }

    use Event::{Birth, Ended, Ending, Refused};

    #[test]
    fn a_correct_life_has_no_violation() {
        assert_eq!(walk(State::Unknown, &[Birth, Ending, Ended]), (State::Dead, vec![]));
        assert_eq!(walk(State::Unknown, &[Birth, Ending, Ended, Birth, Ending, Ended]), (State::Dead, vec![]));
    }

    #[test]
    fn a_refused_end_revives() {
        assert_eq!(walk(State::Unknown, &[Birth, Ending, Refused]), (State::Alive, vec![]));
        assert_eq!(walk(State::Unknown, &[Birth, Ending, Refused, Ending, Ended]), (State::Dead, vec![]));
    }

    #[test]
    fn an_address_may_be_reborn_before_its_end_returns() {
        assert_eq!(walk(State::Unknown, &[Birth, Ending, Birth]), (State::Alive, vec![]));
    }

    #[test]
    fn an_end_without_a_life_differs_from_a_second_end() {
        assert_eq!(walk(State::Unknown, &[Ending]), (State::Unknown, vec![Violation::NeverLived]));
        assert_eq!(walk(State::Unknown, &[Birth, Ending, Ending]), (State::Dying, vec![Violation::Again]));
        assert_eq!(walk(State::Unknown, &[Birth, Ending, Ended, Ending]), (State::Dead, vec![Violation::Again]));
    }

    #[test]
    fn what_a_child_inherits_is_never_a_violation() {
        assert_eq!(walk(State::Inherited, &[Ending, Ended, Ending, Refused]), (State::Inherited, vec![]));
        assert_eq!(walk(State::Inherited, &[Birth, Ending, Ended, Ending]).1, vec![Violation::Again]);
    }
}
