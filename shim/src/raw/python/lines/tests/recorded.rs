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
    /// Where another line begins: `OFFSET:LINE`, without a line `-`.
    pub(super) lines: &'static str,
}

pub(super) const CASES: &[Case] = &[
    Case {
        python: "3.10",
        table: Table::Pairs,
        bytes: &[4, 2, 4, 1, 4, 255, 2, 2, 6, 1, 2, 1, 6, 255, 0, 127, 20, 26],
        first: 1,
        length: 48,
        lines: "0:3 4:4 8:3 12:5 14:6 20:7 22:6 28:159",
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
        lines: "0:1 2:3 16:4 42:3 58:5 60:6 64:7 66:6 82:159 114:- 116:159 148:-",
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
        lines: "0:1 2:3 14:4 32:3 42:5 44:7 46:6 60:7 62:6 74:159 98:- 102:6 108:- 110:159 134:-",
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
        lines: "0:1 2:3 14:4 32:3 42:5 44:7 48:6 56:7 62:6 70:7 74:6 78:159 102:- 106:6 112:- 114:159 138:-",
    },
];
