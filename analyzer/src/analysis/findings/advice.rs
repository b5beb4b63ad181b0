//! What to do, with the lines of this program where they are known.

use crate::analysis::{FoundFinding, Location};

impl FoundFinding {
    /// Names the lines in the advice of memory that was freed too early: the close is what the consumer forgot or did
    /// too late.
    pub(crate) fn advise(&mut self) {
        if self.rule != "freed-while-open" {
            return;
        }
        let Some((other, here)) = self.other.as_ref().zip(self.process.call_line()) else { return };
        let who = other.short_name().unwrap_or_else(|| format!("pid {}", other.pid));
        let advice = match (self.later.as_ref().and_then(Location::call_line), other.call_line()) {
            (Some(close), _) => format!("let {who} close ({close}) before {here}"),
            (None, Some(open)) if self.never_ends => format!("let {who} close what it opens at {open}, before {here}"),
            _ => return,
        };
        self.advice = advice;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Frame;

    fn at(role: &str, line: u32) -> Location {
        let stack = vec![Frame::new(role, "/src/app.cpp", line)];
        Location { role: Some(role.into()), executable: "/app".into(), stack, ..Location::default() }
    }

    #[test]
    fn the_advice_names_the_lines_of_the_program() {
        let found = FoundFinding {
            rule: "freed-while-open".into(),
            other: Some(at("consumer", 20)),
            advice: "free later".into(),
            ..FoundFinding::note_at(at("producer", 14))
        };
        let advice = |mut found: FoundFinding| {
            found.advise();
            found.advice
        };
        assert_eq!(advice(found.clone()), "free later");
        let late = FoundFinding { later: Some(at("consumer", 23)), ..found.clone() };
        assert_eq!(advice(late.clone()), "let consumer close (app.cpp:23) before app.cpp:14");
        let never = FoundFinding { never_ends: true, ..found };
        assert_eq!(advice(never), "let consumer close what it opens at app.cpp:20, before app.cpp:14");
        assert_eq!(advice(FoundFinding { rule: "double-put".into(), ..late }), "free later");
    }
}
