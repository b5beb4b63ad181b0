//! Live objects and their handles.
//!
//! A handle is the address of a reference-counted object, and is valid while the registry holds the object. Every entry
//! point first turns its handles into references here. A handle that was destroyed, or never existed, is detected
//! without reading the memory it points at. Must never hold a lock while an object is dropped.

use std::{collections::BTreeMap, marker::PhantomData, sync::Arc};

use parking_lot::RwLock;

use super::result::{Outcome, ZeResult};

/// The live objects of one kind, by their handles.
pub(crate) type Registry<T> = RwLock<BTreeMap<usize, Arc<T>>>;

/// A kind of object that has handles.
pub(crate) trait Object: Send + Sync + Sized + 'static {
    fn registry() -> &'static Registry<Self>;

    fn all() -> Vec<Arc<Self>> {
        Self::registry().read().values().cloned().collect()
    }
}

/// The name of a type without the modules that it is in, also of its parameters.
pub(crate) fn short_name<T>() -> String {
    let name = std::any::type_name::<T>();
    name.split_inclusive(['<', ' ', '(']).map(|part| part.rsplit("::").next().unwrap_or(part)).collect()
}

/// Gives a type a registry.
macro_rules! object {
    ($kind:ident) => {
        impl crate::ffi::handles::Object for $kind {
            fn registry() -> &'static crate::ffi::handles::Registry<Self> {
                static LIVE: crate::ffi::handles::Registry<$kind> =
                    parking_lot::RwLock::new(std::collections::BTreeMap::new());
                &LIVE
            }
        }
    };
}
pub(crate) use object;

/// A Level Zero handle, as C callers pass it. The word may have any value.
#[repr(transparent)]
pub struct Handle<T> {
    word: usize,
    kind: PhantomData<fn() -> T>,
}

impl<T> Handle<T> {
    /// The NULL handle.
    pub const NULL: Self = Self { word: 0, kind: PhantomData };

    /// The handle with this value. It need not be live.
    pub const fn from_word(word: usize) -> Self {
        Self { word, kind: PhantomData }
    }

    /// Whether it is NULL.
    pub const fn is_null(self) -> bool {
        self.word == 0
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> Handle<T> {
    /// The handle of an object, without registering it.
    pub(crate) fn from_object(object: &Arc<T>) -> Self {
        Self::from_word(Arc::as_ptr(object) as usize)
    }
}

#[expect(private_bounds, reason = "only this crate implements the trait")]
impl<T: Object> Handle<T> {
    /// Adds `object` to the registry, and returns its handle.
    pub(crate) fn register(object: Arc<T>) -> Self {
        let handle = Self::from_object(&object);
        T::registry().write().insert(handle.word, object);
        handle
    }

    /// The live object: `INVALID_NULL_HANDLE` for NULL, `INVALID_ARGUMENT` for a handle that is not live.
    pub(crate) fn get(self) -> Outcome<Arc<T>> {
        T::registry().read().get(&self.word).cloned().ok_or_else(|| self.error())
    }

    /// The live object, or `None` for NULL.
    pub(crate) fn get_optional(self) -> Outcome<Option<Arc<T>>> {
        if self.is_null() { Ok(None) } else { self.get().map(Some) }
    }

    /// Why no object has this handle.
    #[cold]
    fn error(self) -> ZeResult {
        let kind = short_name::<T>();
        if self.is_null() {
            return ZeResult::INVALID_NULL_HANDLE.because(|| format!("the {kind} handle is NULL"));
        }
        ZeResult::INVALID_ARGUMENT.because(|| format!("{:#x} is no {kind} handle, or was destroyed", self.word))
    }

    /// Removes the object from the registry: `INVALID_NULL_HANDLE` for NULL, `INVALID_ARGUMENT` for a handle that is
    /// not live. The object itself lives on while work in flight refers to it.
    pub(crate) fn retire(self) -> Outcome<Arc<T>> {
        T::registry().write().remove(&self.word).ok_or_else(|| self.error())
    }
}
