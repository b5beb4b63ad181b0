//! Which users may own a directory that traces are written to.

/// The users who can replace the files of this user anyway: the user, root, and whoever owns the root directory. In a user namespace the
/// last one is the real root, who has no number of their own there (`user_namespaces(7)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owners {
    /// The effective user of this process.
    pub user: u32,
    /// The owner of `/`.
    pub root: u32,
}

impl Owners {
    /// Whether a file or a directory of `owner` can be trusted.
    pub fn have(self, owner: u32) -> bool {
        owner == self.user || owner == 0 || owner == self.root
    }

    /// Why traces are not written to a directory of `owner`, as part of a message; `None` if they are. An owner can replace what is in a
    /// directory, whatever its mode and its sticky bit.
    pub fn object(self, owner: u32) -> Option<String> {
        (!self.have(owner)).then(|| format!("it belongs to the user {owner}, who could replace the traces in it"))
    }

    /// Why traces are not written to a directory in one of `owner`, as part of a message; `None` if they are.
    pub fn object_to_parent(self, owner: u32) -> Option<String> {
        (!self.have(owner)).then(|| format!("its parent directory belongs to the user {owner}, who could replace it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_and_its_parent_belong_to_this_user_or_to_root() {
        let owners = Owners { user: 7, root: 0 };
        assert!(owners.object(7).is_none() && owners.object(0).is_none() && owners.object_to_parent(0).is_none());
        assert!(owners.object(8).unwrap().starts_with("it belongs to the user 8"));
        assert!(owners.object_to_parent(8).unwrap().starts_with("its parent directory belongs to the user 8"));
        assert!(Owners { user: 0, root: 0 }.object(8).is_some(), "root trusts no other user");
        assert!(Owners { user: 7, root: 65_534 }.have(65_534), "root, seen from a user namespace");
    }
}
