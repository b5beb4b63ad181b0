//! What a row is made of: cells under the names of columns.

use std::borrow::Cow;

/// What stands in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Unsigned 64-bit numbers.
    Number,
    /// UTF-8.
    Text,
    /// True or false.
    Truth,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What stands in it.
    pub shape: Shape,
    /// Whether it may be empty.
    pub optional: bool,
    /// What it says.
    pub about: &'static str,
}

/// What stands in one place of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell<'a> {
    Nothing,
    Number(u64),
    Text(Cow<'a, str>),
    Truth(bool),
}

/// A type of which a column can be.
pub(super) trait Field {
    const SHAPE: Shape;
    const OPTIONAL: bool = false;

    fn cell(&self) -> Cell<'_>;
}

impl Field for u64 {
    const SHAPE: Shape = Shape::Number;

    fn cell(&self) -> Cell<'_> {
        Cell::Number(*self)
    }
}

impl Field for u32 {
    const SHAPE: Shape = Shape::Number;

    fn cell(&self) -> Cell<'_> {
        Cell::Number(u64::from(*self))
    }
}

impl Field for bool {
    const SHAPE: Shape = Shape::Truth;

    fn cell(&self) -> Cell<'_> {
        Cell::Truth(*self)
    }
}

impl Field for &str {
    const SHAPE: Shape = Shape::Text;

    fn cell(&self) -> Cell<'_> {
        Cell::Text(Cow::Borrowed(self))
    }
}

impl Field for String {
    const SHAPE: Shape = Shape::Text;

    fn cell(&self) -> Cell<'_> {
        Cell::Text(Cow::Borrowed(self))
    }
}

/// An address, a handle or a fingerprint, as reports show it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hex(pub(super) u64);

impl Field for Hex {
    const SHAPE: Shape = Shape::Text;

    fn cell(&self) -> Cell<'_> {
        Cell::Text(Cow::Owned(format!("{:#x}", self.0)))
    }
}

impl<T: Field> Field for Option<T> {
    const SHAPE: Shape = T::SHAPE;
    const OPTIONAL: bool = true;

    fn cell(&self) -> Cell<'_> {
        self.as_ref().map_or(Cell::Nothing, Field::cell)
    }
}

/// A row of a table.
pub(super) trait Row {
    /// The place of its table among all.
    const TABLE: usize;
    /// The table's name, and what a row of it is.
    const NAME: &'static str;
    const ABOUT: &'static str;

    /// The columns of the table.
    fn columns() -> Vec<Column>;

    /// Hands on the cells, in the order of the columns.
    fn cells<'a>(&'a self, each: &mut dyn FnMut(Cell<'a>));
}
