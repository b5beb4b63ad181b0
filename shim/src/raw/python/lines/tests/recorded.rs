//! Tables from interpreters, with the lines of their `co_lines`.
//!
//! The function is `def f(x):`, an empty line, `g(x,` and `h())` on two lines, and `try: return [y for y in x]` on
//! two lines with a `finally:` 150 empty lines further on.

use super::super::Table;

pub(super) struct Case {
    pub(super) python: &'static str,
    pub(super) table: Table,
    pub(super) bytes: &'static [u8],
    pub(super) first: u32,
    /// The length of the code in bytes.
    pub(super) length: i64,
    /// Where another line begins.
    pub(super) lines: &'static [(i64, Option<u32>)],
}

pub(super) const CASES: &[Case] = &[
    Case {
        python: "3.10",
        table: Table::Pairs,
        bytes: &[4, 2, 4, 1, 4, 255, 2, 2, 6, 1, 2, 1, 6, 255, 0, 127, 20, 26],
        first: 1,
        length: 48,
        lines: &[
            (0, Some(3)),
            (4, Some(4)),
            (8, Some(3)),
            (12, Some(5)),
            (14, Some(6)),
            (20, Some(7)),
            (22, Some(6)),
            (28, Some(159)),
        ],
    },
    Case {
        python: "3.11",
        table: Table::Locations,
        bytes: &[
            128, 0, 229, 4, 5, 128, 97, 221, 6, 7, 129, 99, 132, 99, 241, 3, 1, 5, 11, 244, 0, 1, 5, 11, 240, 0, 1, 5,
            11, 240, 4, 90, 2, 5, 13, 240, 2, 1, 16, 28, 240, 0, 1, 16, 28, 216, 25, 26, 240, 3, 1, 16, 28, 241, 0, 1,
            16, 28, 244, 0, 1, 16, 28, 245, 114, 4, 0, 9, 10, 136, 33, 137, 4, 140, 4, 136, 4, 136, 4, 248, 141, 1,
            136, 33, 137, 4, 140, 4, 136, 4, 136, 4, 248, 248, 248,
        ],
        first: 1,
        length: 154,
        lines: &[
            (0, Some(1)),
            (2, Some(3)),
            (16, Some(4)),
            (42, Some(3)),
            (58, Some(5)),
            (60, Some(6)),
            (64, Some(7)),
            (66, Some(6)),
            (82, Some(159)),
            (114, None),
            (116, Some(159)),
            (148, None),
        ],
    },
    Case {
        python: "3.12",
        table: Table::Locations,
        bytes: &[
            128, 0, 228, 4, 5, 128, 97, 220, 6, 7, 131, 99, 244, 3, 1, 5, 11, 240, 4, 90, 2, 5, 13, 224, 25, 26, 246,
            3, 1, 16, 28, 216, 20, 21, 242, 3, 0, 17, 18, 242, 0, 1, 16, 28, 244, 114, 4, 0, 9, 10, 136, 33, 141, 4,
            249, 242, 115, 4, 1, 16, 28, 248, 244, 114, 4, 0, 9, 10, 136, 33, 141, 4, 250,
        ],
        first: 1,
        length: 140,
        lines: &[
            (0, Some(1)),
            (2, Some(3)),
            (14, Some(4)),
            (32, Some(3)),
            (42, Some(5)),
            (44, Some(7)),
            (46, Some(6)),
            (60, Some(7)),
            (62, Some(6)),
            (74, Some(159)),
            (98, None),
            (102, Some(6)),
            (108, None),
            (110, Some(159)),
            (134, None),
        ],
    },
    Case {
        python: "3.13",
        table: Table::Locations,
        bytes: &[
            128, 0, 228, 4, 5, 128, 97, 220, 6, 7, 131, 99, 244, 3, 1, 5, 11, 240, 4, 90, 2, 5, 13, 225, 25, 26, 243,
            3, 1, 16, 28, 217, 25, 26, 144, 65, 243, 3, 0, 17, 18, 217, 25, 26, 241, 3, 1, 16, 28, 244, 114, 4, 0, 9,
            10, 136, 33, 141, 4, 249, 242, 115, 4, 1, 16, 28, 248, 244, 114, 4, 0, 9, 10, 136, 33, 141, 4, 250,
        ],
        first: 1,
        length: 144,
        lines: &[
            (0, Some(1)),
            (2, Some(3)),
            (14, Some(4)),
            (32, Some(3)),
            (42, Some(5)),
            (44, Some(7)),
            (48, Some(6)),
            (56, Some(7)),
            (62, Some(6)),
            (70, Some(7)),
            (74, Some(6)),
            (78, Some(159)),
            (102, None),
            (106, Some(6)),
            (112, None),
            (114, Some(159)),
            (138, None),
        ],
    },
];
