//! The page of a rule as text for a terminal.
//!
//! A page is Markdown of a few forms only: headings of the first level, paragraphs with code and links, and blocks of
//! code. This module knows no others.

use crate::report::{Paint, WIDTH, wrapped};

/// What stands before everything but headings.
const INDENT: &str = "  ";

/// What stands between wrong and fixed code.
const BETWEEN: &str = " │ ";

/// The paragraph between the wrong and the fixed code of a page.
const FIXED: &str = "Fixed:";

/// A part of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Block {
    Heading(String),
    /// One line, with the marks of code, and links as their text.
    Paragraph(String),
    /// The lines of code.
    Code(Vec<String>),
}

/// Renders a page for a terminal.
pub(super) fn rendered(markdown: &str, paint: Paint) -> String {
    let blocks = blocks(markdown);
    let mut rest = blocks.as_slice();
    let mut below_heading = false;
    let mut text = String::new();
    while let [first, after @ ..] = rest {
        rest = after;
        if !std::mem::replace(&mut below_heading, matches!(first, Block::Heading(_))) {
            text.push('\n');
        }
        let lines = match (first, after) {
            (Block::Heading(heading), _) => vec![paint.strong(heading)],
            (Block::Paragraph(line), _) => paragraph(line, paint),
            (Block::Code(wrong), [Block::Paragraph(between), Block::Code(fixed), behind @ ..]) if between == FIXED => {
                match beside(wrong, fixed, paint) {
                    Some(lines) => {
                        rest = behind;
                        lines
                    }
                    None => code(wrong),
                }
            }
            (Block::Code(lines), _) => code(lines),
        };
        for line in lines {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}

/// The parts of a page.
fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = markdown.lines();
    let mut paragraph = String::new();
    loop {
        let line = lines.next();
        let heading = line.and_then(|line| line.strip_prefix("# "));
        let fence = line.is_some_and(|line| line.starts_with("```"));
        if let Some(line) = line
            && heading.is_none()
            && !fence
            && !line.is_empty()
        {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(line);
            continue;
        }
        if !paragraph.is_empty() {
            blocks.push(Block::Paragraph(without_targets(&std::mem::take(&mut paragraph))));
        }
        if line.is_none() {
            return blocks;
        }
        if let Some(heading) = heading {
            blocks.push(Block::Heading(heading.to_owned()));
        } else if fence {
            let code = lines.by_ref().take_while(|line| !line.starts_with("```")).map(str::to_owned).collect();
            blocks.push(Block::Code(code));
        }
    }
}

/// A text with its links as their text only.
fn without_targets(text: &str) -> String {
    let mut rest = text;
    let mut out = String::new();
    while let Some((before, linked, behind)) = first_link(rest) {
        out.push_str(before);
        out.push_str(linked);
        rest = behind;
    }
    out + rest
}

/// What stands before the first link of a text, the link's own text, and what stands behind it.
fn first_link(text: &str) -> Option<(&str, &str, &str)> {
    let (inside, rest) = text.split_once("](")?;
    let (before, linked) = inside.rsplit_once('[')?;
    let (_, behind) = rest.split_once(')')?;
    Some((before, linked, behind))
}

/// The lines of a paragraph. In colour, code is marked by it and not by quotes.
fn paragraph(line: &str, paint: Paint) -> Vec<String> {
    let text = wrapped(line, "", paint.width.min(WIDTH).saturating_sub(INDENT.len()));
    let mut is_code = false;
    let marked = |line: &str| {
        let mut marked = INDENT.to_owned();
        for (index, part) in line.split('`').enumerate() {
            // Code may go on from the line above.
            is_code ^= index > 0;
            if index > 0 && !paint.color {
                marked.push('`');
            }
            if is_code && paint.color && !part.is_empty() {
                marked.push_str(&paint.strong(part));
            } else {
                marked.push_str(part);
            }
        }
        marked
    };
    text.lines().map(marked).collect()
}

/// The lines of code, as they are.
fn code(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| format!("{INDENT}{INDENT}{line}")).collect()
}

/// Wrong and fixed code beside each other; `None` if the width does not suffice.
fn beside(wrong: &[String], fixed: &[String], paint: Paint) -> Option<Vec<String>> {
    let widest = |lines: &[String]| lines.iter().map(|line| line.chars().count()).max().unwrap_or_default();
    let left = widest(wrong).max(WRONG.len());
    let whole = INDENT.len() + left + BETWEEN.chars().count() + widest(fixed).max(FIXED.len());
    if whole > paint.width {
        return None;
    }
    let row = |one: &str, other: &str| format!("{INDENT}{one:<left$}{BETWEEN}{other}");
    let line = |lines: &[String], at: usize| lines.get(at).cloned().unwrap_or_default();
    let head = row(WRONG, FIXED).replace(WRONG, &paint.strong(WRONG)).replace(FIXED, &paint.strong(FIXED));
    let rows = (0..wrong.len().max(fixed.len())).map(|at| row(&line(wrong, at), &line(fixed, at)));
    Some(std::iter::once(head).chain(rows).collect())
}

/// What stands above wrong code.
const WRONG: &str = "Wrong:";

#[cfg(test)]
mod tests {
    use urscope_rule_pages::Page;
    use urscope_rules::catalog::RULES;

    use super::*;

    const PAGE: &str = "# What it does\n\nReports a `put` of\n[`other`](#other) data. See [it](x).\n\n# Example\n\nHere:\n\n```cpp\n\
        one();\n  two(); // Wrong: `x`\n```\n\nFixed:\n\n```cpp\none();\n```\n\n# What to do\n\nNothing.\n";

    fn paint(color: bool, width: usize) -> Paint {
        Paint { width, ..color.into() }
    }

    #[test]
    fn wrong_and_fixed_code_stand_beside_each_other_where_there_is_room() {
        let wide = "\nWhat it does\n  Reports a `put` of `other` data. See it.\n\nExample\n  Here:\n\n  \
            Wrong:                 │ Fixed:\n  one();                 │ one();\n    two(); // Wrong: `x` │\n\nWhat to do\n  Nothing.\n";
        assert_eq!(rendered(PAGE, paint(false, 60)), wide);
        let narrow = "\nWhat it does\n  Reports a `put` of\n  `other` data. See\n  it.\n\nExample\n  Here:\n\n    \
            one();\n      two(); // Wrong: `x`\n\n  Fixed:\n\n    one();\n\nWhat to do\n  Nothing.\n";
        assert_eq!(rendered(PAGE, paint(false, 20)), narrow);
    }

    #[test]
    fn headings_and_code_are_marked_in_colour() {
        let text = rendered(PAGE, paint(true, 60));
        assert!(
            text.starts_with("\n\x1b[1mWhat it does\x1b[0m\n  Reports a \x1b[1mput\x1b[0m of \x1b[1mother\x1b[0m"),
            "{text:?}"
        );
        assert!(text.contains("  two(); // Wrong: `x`"), "{text:?}");
        assert!(text.contains("\x1b[1mWrong:\x1b[0m                 │ \x1b[1mFixed:\x1b[0m\n"), "{text:?}");
        let split = paragraph("a `b c` d", paint(true, 6));
        assert_eq!(split, ["  a \x1b[1mb\x1b[0m", "  \x1b[1mc\x1b[0m d"]);
    }

    #[test]
    fn every_page_is_of_the_known_forms_and_fits() {
        for rule in RULES {
            let page = Page::for_rule(rule).text;
            let code: Vec<_> = page.split("```").step_by(2).collect();
            for line in code.concat().lines() {
                let other = ["- ", "* ", "|", ">", "## ", "    ", "1."].iter().any(|form| line.starts_with(form));
                assert!(!other && !line.contains("**"), "{}: {line}", rule.code);
            }
            let text = rendered(&page, paint(false, WIDTH));
            assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{}: {text}", rule.code);
            assert!(!text.contains("](#"), "{}: {text}", rule.code);
            assert_eq!(text.contains(BETWEEN), Page::for_rule(rule).example().is_some(), "{}: {text}", rule.code);
        }
    }
}
