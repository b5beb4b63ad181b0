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
    pub fn object(self, (owner, is_system): (u32, bool), (of_parent, parent_is_system): (u32, bool)) -> Option<String> {
        let trusted = |owner, is_system| self.have(owner) || is_system && owner == self.root;
        if !trusted(owner, is_system) {
            Some(format!("it belongs to the user {owner}, who could replace the traces in it"))
        } else if !trusted(of_parent, parent_is_system) {
            Some(format!("its parent directory belongs to the user {of_parent}, who could replace it"))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_and_its_parent_belong_to_this_user_or_to_root() {
        let owners = Owners { user: 7, root: 0 };
        let object = |own, parent| owners.object((own, false), (parent, false));
        assert!(object(7, 0).is_none() && object(0, 7).is_none());
        assert!(object(8, 7).unwrap().starts_with("it belongs to the user 8"));
        assert!(object(7, 8).unwrap().starts_with("its parent directory belongs to the user 8"));
        assert!(Owners { user: 0, root: 0 }.object((8, false), (0, true)).is_some(), "root trusts no other user");
    }

    #[test]
    fn a_user_without_a_number_is_trusted_with_directories_of_the_system_only() {
        let owners = Owners { user: 7, root: 65_534 };
        assert!(!owners.have(65_534));
        assert!(owners.object((7, false), (65_534, true)).is_none());
        assert!(owners.object((7, false), (65_534, false)).is_some() && owners.object((8, true), (7, false)).is_some());
    }
}
