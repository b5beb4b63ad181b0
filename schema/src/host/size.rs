//! Counts, sizes and times in text. Sizes have a form for sentences and one for tables.

/// A count with its noun in the singular or plural: `1 process`, `2 processes`, `2 handles`.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    match count.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {noun}"),
        count if noun.ends_with('s') => format!("{} {noun}es", grouped(count)),
        count => format!("{} {noun}s", grouped(count)),
    }
}

/// Words in a sentence: `a`, `a and b`, `a, b and c`.
pub fn enumerated(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [word] => word.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// The units and their sizes in bytes.
const UNITS: [(u64, &str); 4] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];

/// A size, for tables: `8 MiB`, `1.5 KiB`, `64 bytes`.
pub fn short_size(bytes: u64) -> String {
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        None => counted(bytes, "byte"),
        Some((unit, name)) if bytes.is_multiple_of(*unit) => format!("{} {name}", bytes / unit),
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
    }
}

/// A size, for sentences: `8 MiB (8,388,608 bytes)`, `64 bytes`.
pub fn size(bytes: u64) -> String {
    if bytes < 1 << 10 { short_size(bytes) } else { format!("{} ({} bytes)", short_size(bytes), grouped(bytes)) }
}

/// A number with commas between thousands: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A duration in nanoseconds as text, with three digits as on the page: `818 ns`, `564 us`, `55.4 ms`, `12 s`.
pub fn duration(nanos: u64) -> String {
    let (value, unit) = match nanos {
        0..1_000 => return format!("{nanos} ns"),
        1_000..999_500 => (nanos as f64 / 1e3, "us"),
        999_500..999_500_000 => (nanos as f64 / 1e6, "ms"),
        _ => (nanos as f64 / 1e9, "s"),
    };
    let digits = match value {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

/// A time since the first process of the run began, such as `+1.204 ms`.
pub fn since(nanos: u64) -> String {
    let (value, unit) = match nanos {
        0..10_000_000_000 => (nanos as f64 / 1e6, "ms"),
        _ => (nanos as f64 / 1e9, "s"),
    };
    format!("+{value:.3} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_joined_as_in_a_sentence() {
        let words = |count: usize| ["a", "b", "c"].iter().take(count).map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!([0, 1, 2, 3].map(|count| enumerated(&words(count))), ["", "a", "a and b", "a, b and c"]);
    }

    #[test]
    fn a_size_has_its_unit_and_its_bytes() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1,023 bytes"),
            (1024, "1 KiB (1,024 bytes)"),
            (1536, "1.5 KiB (1,536 bytes)"),
            (8 << 20, "8 MiB (8,388,608 bytes)"),
            (3 << 40, "3 TiB (3,298,534,883,328 bytes)"),
        ] {
            assert_eq!(size(bytes), text);
        }
        assert_eq!(short_size(8 << 20), "8 MiB");
    }

    #[test]
    fn a_noun_follows_its_count() {
        assert_eq!(counted(0_usize, "handle"), "0 handles");
        assert_eq!(counted(1_u64, "process"), "1 process");
        assert_eq!(counted(7000_usize, "process"), "7,000 processes");
    }

    #[test]
    fn a_duration_has_three_digits() {
        let durations = [999, 1_100, 58_123, 999_499, 999_500, 1_149_000, 58_000_000, 2_000_000_000, 612_000_000_000];
        let texts = ["999 ns", "1.1 us", "58.1 us", "999 us", "1 ms", "1.15 ms", "58 ms", "2 s", "612 s"];
        assert_eq!(durations.map(duration), texts);
    }

    #[test]
    fn a_time_has_a_unit_for_its_size() {
        assert_eq!(since(1_204_000), "+1.204 ms");
        assert_eq!(since(1_204_000_000), "+1204.000 ms");
        assert_eq!(since(12_345_678_901), "+12.346 s");
    }
}
