//! The sizes of types.
//!
//! A type refers to types that come before it, whose layout is known by then, so no layout is computed twice and none
//! recursively. Must never overflow: a size that does not fit counts as unknown.

use std::collections::HashMap;

/// `StorageClass`: where the memory of a pointer lies.
pub(super) mod storage {
    /// `UniformConstant`: memory that is not written.
    pub(super) const CONSTANT: u32 = 0;
    /// `Workgroup`: the local memory of a group.
    pub(super) const WORKGROUP: u32 = 4;
    /// `Function`: private memory, and arguments that are passed by value.
    pub(super) const FUNCTION: u32 = 7;
}

/// The size of the largest argument, in bytes.
const MAX_ARGUMENT_SIZE: u64 = 1 << 20;

/// A type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// A value with a size and an alignment in bytes.
    Value(Layout),
    /// A pointer: the storage class, and the type that it points to, if it has one.
    Pointer(u32, Option<u32>),
    /// A type without a size: void, a function, an image, or anything else that is no plain value.
    Opaque,
}

/// Size and alignment in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    size: u64,
    align: u64,
}

/// How a kernel takes an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    /// A value of this size in bytes.
    Value(usize),
    /// A pointer to memory of the device or the host.
    Pointer,
    /// Local memory.
    Local,
    /// Not supported by this device: images, samplers, and values of unknown size.
    Unsupported,
}

/// The types of a module, by id.
#[derive(Default)]
pub(super) struct Types(HashMap<u32, Type>);

impl Types {
    /// Adds a type. The first one with an id counts.
    pub(super) fn add(&mut self, id: u32, kind: Type) {
        self.0.entry(id).or_insert(kind);
    }

    /// A boolean or a number of `bits` bits.
    pub(super) fn scalar(bits: u32) -> Type {
        let size = u64::from(bits.div_ceil(8)).next_power_of_two();
        Type::Value(Layout { size, align: size })
    }

    /// A vector, of 3 components as large as of 4.
    pub(super) fn vector(&self, of: u32, count: u32) -> Type {
        let count = if count == 3 { 4 } else { u64::from(count) };
        let size = self.layout(of).and_then(|item| item.size.checked_mul(count));
        Self::value(size.map(|size| Layout { size, align: size.max(1).next_power_of_two() }))
    }

    /// An array of `count` items, or of an unknown number.
    pub(super) fn array(&self, of: u32, count: Option<u64>) -> Type {
        let layout = self.layout(of).zip(count);
        Self::value(layout.and_then(|(item, count)| Some(Layout { size: item.size.checked_mul(count)?, ..item })))
    }

    /// A structure. A packed one has no gaps.
    pub(super) fn structure(&self, members: &[u32], packed: bool) -> Type {
        let mut whole = Some(Layout { size: 0, align: 1 });
        for member in members {
            whole = whole.zip(self.layout(*member)).and_then(|(whole, member)| {
                let align = if packed { 1 } else { member.align };
                let size = whole.size.checked_next_multiple_of(align)?.checked_add(member.size)?;
                Some(Layout { size, align: whole.align.max(align) })
            });
        }
        let padded = |whole: Layout| Some(Layout { size: whole.size.checked_next_multiple_of(whole.align)?, ..whole });
        Self::value(whole.and_then(padded))
    }

    /// How a kernel takes a parameter of this type.
    pub(super) fn parameter(&self, id: u32) -> Parameter {
        match self.0.get(&id) {
            Some(Type::Pointer(storage::WORKGROUP, _)) => Parameter::Local,
            Some(Type::Pointer(storage::FUNCTION, of)) => self.value_of(*of),
            Some(Type::Pointer(..)) => Parameter::Pointer,
            _ => self.value_of(Some(id)),
        }
    }

    /// Whether it is a pointer to memory that is not written.
    pub(super) fn is_constant(&self, id: u32) -> bool {
        matches!(self.0.get(&id), Some(Type::Pointer(storage::CONSTANT, _)))
    }

    /// The size of a value of this type in bytes, if it has one.
    pub(super) fn size(&self, id: u32) -> Option<usize> {
        self.layout(id).map(|layout| layout.size as usize)
    }

    fn value_of(&self, id: Option<u32>) -> Parameter {
        id.and_then(|id| self.size(id)).map_or(Parameter::Unsupported, Parameter::Value)
    }

    fn layout(&self, id: u32) -> Option<Layout> {
        match self.0.get(&id)? {
            Type::Value(layout) => Some(*layout),
            Type::Pointer(..) => Some(Layout { size: 8, align: 8 }),
            Type::Opaque => None,
        }
    }

    fn value(layout: Option<Layout>) -> Type {
        match layout {
            Some(layout) if layout.size <= MAX_ARGUMENT_SIZE => Type::Value(layout),
            _ => Type::Opaque,
        }
    }
}
