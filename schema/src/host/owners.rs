//! Which users may own a directory that traces are written to.

/// The users who are trusted with the files of this user: the user and root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owners {
    /// The effective user of this process.
    pub user: u32,
    /// The owner of `/`. In a user namespace that has no number for the real root, it is that of everyone who has none
    /// (`user_namespaces(7)`), so it is trusted with the directories of [`SYSTEM`] only.
    pub root: u32,
}

/// The owner of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The user.
    pub user: u32,
    /// Whether the directory is one of [`SYSTEM`].
    pub is_system: bool,
}

/// Directories that belong to root on every system.
pub const SYSTEM: [&str; 9] = ["/", "/dev", "/dev/shm", "/home", "/run", "/run/user", "/tmp", "/var", "/var/tmp"];

impl Owners {
    /// Whether a file or a directory of `owner` can be trusted.
    pub fn have(self, owner: u32) -> bool {
        owner == self.user || owner == 0
    }

    /// Part of a message: why traces are not written to a directory with this owner and this owner of its parent;
    /// `None` if they are. The owner can replace the contents of a directory, whatever its mode and sticky bit. The
    /// owner of `/` is trusted with the directories of [`SYSTEM`].
    pub fn object(self, own: Owner, parent: Owner) -> Option<String> {
        let trusted = |owner: Owner| self.have(owner.user) || owner.is_system && owner.user == self.root;
        if !trusted(own) {
            Some(format!("it belongs to the user {}, who could replace the traces in it", own.user))
        } else if !trusted(parent) {
            Some(format!("its parent directory belongs to the user {}, who could replace it", parent.user))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(user: u32) -> Owner {
        Owner { user, is_system: false }
    }

    fn of_system(user: u32) -> Owner {
        Owner { user, is_system: true }
    }

    #[test]
    fn a_directory_and_its_parent_belong_to_this_user_or_to_root() {
        let owners = Owners { user: 7, root: 0 };
        let object = |own, parent| owners.object(owner(own), owner(parent));
        assert!(object(7, 0).is_none() && object(0, 7).is_none());
        assert!(object(8, 7).unwrap().starts_with("it belongs to the user 8"));
        assert!(object(7, 8).unwrap().starts_with("its parent directory belongs to the user 8"));
        assert!(Owners { user: 0, root: 0 }.object(owner(8), of_system(0)).is_some(), "root trusts no other user");
    }

    #[test]
    fn a_user_without_a_number_is_trusted_with_directories_of_the_system_only() {
        let owners = Owners { user: 7, root: 65_534 };
        assert!(!owners.have(65_534));
        assert!(owners.object(owner(7), of_system(65_534)).is_none());
        assert!(owners.object(owner(7), owner(65_534)).is_some() && owners.object(of_system(8), owner(7)).is_some());
    }
}
