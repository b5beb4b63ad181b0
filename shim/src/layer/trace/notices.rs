//! The messages of the shim: `tracing` events become a line on stderr and a note in the trace.
//!
//! Calls must not go through `tracing`: `scripts/bench facade` shows the cost.

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

use crate::{knobs, raw::stderr};

struct Notices;

/// Receives the events of this library. A program's own `tracing` is another copy.
pub fn install() {
    // It only fails if it is already set.
    let _ = tracing::subscriber::set_global_default(Notices);
}

impl Subscriber for Notices {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        super::note(&message.0);
        if *event.metadata().level() <= Level::WARN || !knobs::read().quiet {
            stderr::say(&message.0);
        }
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
