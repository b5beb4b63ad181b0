//! The rows of tables, and the types of their columns.

use std::borrow::Cow;

use urscope_schema::trace::records::Hex;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// An unsigned 64-bit number.
    Number,
    Text,
}

/// The description of a column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    /// Whether a cell may be empty.
    pub(super) optional: bool,
    /// What it contains, as documentation.
    pub(super) about: &'static str,
}

/// The content of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell<'a> {
    Nothing,
    Number(u64),
    Text(Cow<'a, str>),
}

/// A type that a column can have.
pub(super) trait Field {
    const SHAPE: Shape;
    const OPTIONAL: bool = false;

    fn cell(&self) -> Cell<'_>;
}

macro_rules! fields {
    ($($type:ty: $shape:ident($this:ident) $cell:expr;)*) => {
        $(impl Field for $type {
            const SHAPE: Shape = Shape::$shape;

            fn cell(&self) -> Cell<'_> {
                let $this = self;
                Cell::$shape($cell)
            }
        })*
    };
}

fields! {
    u64: Number(number) *number;
    u32: Number(number) u64::from(*number);
    &str: Text(text) Cow::Borrowed(text);
    String: Text(text) Cow::Borrowed(text);
    Hex: Text(bits) Cow::Owned(format!("{:#x}", bits.0));
}

impl<T: Field> Field for Option<T> {
    const SHAPE: Shape = T::SHAPE;
    const OPTIONAL: bool = true;

    fn cell(&self) -> Cell<'_> {
        self.as_ref().map_or(Cell::Nothing, Field::cell)
    }
}

pub(super) trait Row {
    /// The index of its table among all tables.
    const TABLE: usize;
    /// The name of the table, and a description of its rows.
    const NAME: &'static str;
    const ABOUT: &'static str;

    fn columns() -> Vec<Column>;

    /// Passes the cells to `each`, in the order of the columns.
    fn cells<'a>(&'a self, each: &mut dyn FnMut(Cell<'a>));
}
