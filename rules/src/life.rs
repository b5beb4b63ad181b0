//! The life of one handle, as one table: states by events.
//!
//! A handle is born when the call that makes it has returned, and dies when the call that ends it begins: between the
//! two moments its address may already belong to another thread's new handle, and anything else accuses innocent
//! programs. The world keeps one state per address and moves it with [`step`]; the rules read the sin from it.
//!
//! Events that close an ending ([`Event::Ended`], [`Event::Refused`]) are meant for the life at which the ending was
//! aimed. When the address has been reborn meanwhile, the world drops them: they say nothing about the new life.

/// What an address is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Nothing was ever born here, or so long ago that it is forgotten.
    Unknown,
    /// In use.
    Alive,
    /// A call that ends it has begun and not returned.
    Dying,
    /// It was ended.
    Dead,
    /// It lived in the process that this one was forked from: the child may do as it likes.
    Inherited,
}

/// What happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A call that makes one returned it.
    Birth,
    /// A call that ends it begins.
    Ending,
    /// That call succeeded.
    Ended,
    /// That call failed.
    Refused,
}

/// What is wrong with an event in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sin {
    /// It is ended though it never lived.
    NeverLived,
    /// It is ended once more.
    Again,
}

/// Where an event leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The state afterwards.
    pub next: State,
    /// What is wrong, if anything.
    pub sin: Option<Sin>,
}

/// The table.
#[rustfmt::skip]
#[allow(clippy::enum_glob_use, clippy::match_same_arms, reason = "a table is read by its rows")]
pub const fn step(state: State, event: Event) -> Step {
    use {Event::*, State::*};
    match (state, event) {
        // A birth is believed in every state: the earlier end may have happened where we do not see.
        (_,         Birth)   => to(Alive),

        (Unknown,   Ending)  => wrong(Unknown, Sin::NeverLived),
        (Alive,     Ending)  => to(Dying),
        (Dying,     Ending)  => wrong(Dying, Sin::Again),
        (Dead,      Ending)  => wrong(Dead, Sin::Again),
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
    Step { next, sin: None }
}

const fn wrong(next: State, sin: Sin) -> Step {
    Step { next, sin: Some(sin) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(from: State, events: &[Event]) -> (State, Vec<Sin>) {
        let mut sins = Vec::new();
        let state = events.iter().fold(from, |state, event| {
            let step = step(state, *event);
            sins.extend(step.sin);
            step.next
        });
        (state, sins)
    }

    use Event::{Birth, Ended, Ending, Refused};

    #[test]
    fn a_faultless_life_has_no_sin() {
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
    fn an_end_without_a_life_is_told_from_a_second_end() {
        assert_eq!(walk(State::Unknown, &[Ending]), (State::Unknown, vec![Sin::NeverLived]));
        assert_eq!(walk(State::Unknown, &[Birth, Ending, Ending]), (State::Dying, vec![Sin::Again]));
        assert_eq!(walk(State::Unknown, &[Birth, Ending, Ended, Ending]), (State::Dead, vec![Sin::Again]));
    }

    #[test]
    fn what_a_child_inherits_is_never_a_sin() {
        assert_eq!(walk(State::Inherited, &[Ending, Ended, Ending, Refused]), (State::Inherited, vec![]));
        assert_eq!(walk(State::Inherited, &[Birth, Ending, Ended, Ending]).1, vec![Sin::Again]);
    }
}
