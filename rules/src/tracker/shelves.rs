//! Slots for values of which there may be many.

/// Slots that never move: memory that is full is not copied to larger memory, but more is added.
#[derive(Clone, Debug)]
pub(super) struct Shelves<T>(Vec<Vec<Option<T>>>);

impl<T> Default for Shelves<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Shelves<T> {
    /// The slots of each part: few, so that a part fits where other memory was freed.
    const SLOTS: usize = 64;

    /// What is in a slot, if there is such a slot.
    #[inline]
    pub(super) fn at(&self, slot: u32) -> Option<&Option<T>> {
        self.0.get(slot as usize / Self::SLOTS)?.get(slot as usize % Self::SLOTS)
    }

    /// The same, for changing it.
    #[inline]
    pub(super) fn at_mut(&mut self, slot: u32) -> Option<&mut Option<T>> {
        self.0.get_mut(slot as usize / Self::SLOTS)?.get_mut(slot as usize % Self::SLOTS)
    }

    /// Adds an empty slot.
    pub(super) fn add(&mut self) -> u32 {
        if self.0.last().is_none_or(|last| last.len() == Self::SLOTS) {
            self.0.push(Vec::with_capacity(if self.0.is_empty() { 0 } else { Self::SLOTS }));
        }
        let before = (self.0.len() - 1) * Self::SLOTS;
        let Some(last) = self.0.last_mut() else { return 0 };
        last.push(None);
        (before + last.len() - 1) as u32
    }

    /// All values, in the order of their slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten().flatten()
    }
}
