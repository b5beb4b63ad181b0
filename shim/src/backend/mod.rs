//! The backends: who does the work of a call. Today there is one, the runtime's own [`adapter`].

pub mod adapter;
