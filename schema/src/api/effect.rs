//! What the functions do to the objects that they are about.

#![expect(clippy::inline_always, reason = "the effect is mostly known where a call is compiled")]

use crate::handle::Kind;

macro_rules! effects {
    ($($(#[$doc:meta])* $effect:ident,)*) => {
        /// What a successful call does to an object of a kind. An object is born at the exit of a call, and dies at the
        /// enter of one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Effect {
            $($(#[$doc])* $effect(Kind),)*
        }

        impl Effect {
            /// The kind of the object. An effect on handle data or on a mapping has the kind of what is shared.
            #[inline]
            pub const fn kind(self) -> Kind {
                match self { $(Self::$effect(kind) => kind,)* }
            }
        }
    };
}

effects! {
    /// It allocates memory, or imports it if its description names a descriptor.
    Allocates,
    /// It frees memory.
    Frees,
    /// It frees memory when a queue executes its command.
    FreesLater,
    /// It creates the object.
    Creates,
    /// It adds a reference to the object.
    Retains,
    /// It releases a reference to the object; the last one ends it.
    Releases,
    /// It ends the object.
    Destroys,
    /// It ends all that belongs to the object, which itself stays.
    Resets,
    /// It gets handle data for the object.
    Exports,
    /// It exports a descriptor of the object if its structure asks for one, and shares nothing otherwise.
    MayExport,
    /// It puts handle data of the object back.
    Puts,
    /// It opens handle data: maps memory, or makes an object.
    Opens,
    /// It closes what was opened.
    Closes,
    /// It asks the object for a property.
    Asks,
    /// It uses the object in another way.
    Uses,
    /// It maps physical memory.
    Maps,
    /// It unmaps physical memory.
    Unmaps,
    /// It appends a command that accesses memory to a queue or a command list.
    Enqueues,
    /// It appends a command that migrates memory, and neither reads nor changes its bytes.
    Migrates,
    /// It accesses memory, and may wait until that has completed.
    Performs,
    /// It enqueues a kernel, which may access all memory that its arguments point to.
    Launches,
    /// It enqueues commands whose accesses to memory are not looked into: a graph, or a batch of copies.
    Submits,
    /// It executes command lists, and waits for them if their queue is synchronous.
    Executes,
    /// It takes the commands out of a command list, or makes an event not signalled.
    Clears,
    /// It makes a queue wait for, or signal, what is not followed, or captures its commands.
    Orders,
    /// It lets the program find out, now or later and without a wait, that commands have completed.
    Reveals,
    /// It gives the program a way to order commands that is not seen, from now on.
    Exposes,
    /// It unloads code. Later kernels may have the handles of those that were in it.
    Unloads,
    /// It makes a queue signal an event, which a call about an event names.
    Signals,
    /// It waits on the host for the object, or lets the program do so.
    Waits,
}

impl Effect {
    /// Whether it shares something between processes. The verdict is about these.
    #[inline]
    pub const fn is_ipc(self) -> bool {
        matches!(self, Self::Exports(_) | Self::MayExport(_) | Self::Puts(_) | Self::Opens(_) | Self::Closes(_))
    }

    /// Whether it ends memory of this process or a mapping.
    #[inline]
    pub const fn ends_memory(self) -> bool {
        matches!(self, Self::Frees(_) | Self::FreesLater(_) | Self::Closes(Kind::Usm) | Self::Unmaps(_))
    }

    /// Whether it appends a command that accesses memory to a queue or a command list.
    #[inline(always)]
    pub const fn is_command(self) -> bool {
        matches!(self, Self::Enqueues(_) | Self::Migrates(_) | Self::Performs(_) | Self::Launches(_))
    }

    /// Whether it enqueues a kernel.
    #[inline(always)]
    pub const fn launches(self) -> bool {
        matches!(self, Self::Launches(_))
    }

    /// Whether it enqueues commands whose accesses are not looked into.
    #[inline(always)]
    pub const fn submits(self) -> bool {
        matches!(self, Self::Submits(_))
    }

    /// Whether its calls are of no interest in a process that shares nothing, besides those of commands.
    #[inline(always)]
    pub const fn is_passed_on(self) -> bool {
        matches!(self, Self::Submits(_) | Self::Orders(_) | Self::Signals(Kind::Queue) | Self::Clears(Kind::Event))
    }

    /// Whether it makes a queue, waits for one or reveals its state, orders its commands, or clears one, or unloads
    /// code. Such calls are never recorded, unless they report that the device has failed.
    #[inline(always)]
    pub const fn is_never_recorded(self) -> bool {
        matches!(
            self,
            Self::Waits(Kind::Queue | Kind::Context)
                | Self::Creates(Kind::Queue)
                | Self::Clears(_)
                | Self::Orders(_)
                | Self::Reveals(_)
                | Self::Exposes(_)
                | Self::Asks(Kind::Queue)
                | Self::Signals(Kind::Queue)
                | Self::Unloads(_)
        )
    }

    /// Whether it may be about all queues, not only about the one that the call names.
    #[inline(always)]
    pub const fn is_about_all_queues(self) -> bool {
        matches!(self.kind(), Kind::Context)
    }

    /// Whether it executes command lists.
    #[inline(always)]
    pub const fn executes(self) -> bool {
        matches!(self, Self::Executes(_))
    }

    /// Whether the host knows after a success that commands have completed, or can find out.
    #[inline(always)]
    pub const fn waits(self) -> bool {
        matches!(self, Self::Waits(_) | Self::Asks(Kind::Event | Kind::Queue) | Self::Reveals(_))
    }

    /// The kind of the handle data that it opens; `None` if it opens none.
    #[inline(always)]
    pub const fn opens(self) -> Option<Kind> {
        match self {
            Self::Opens(kind) => kind.handle_data(),
            _ => None,
        }
    }
}
