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

    /// Why a directory is not used for traces, as part of a message; `None` if it is. Whoever owns a directory can replace what is in it,
    /// whatever its mode and its sticky bit, and whoever owns its parent can replace the directory.
    pub fn object(self, owner: u32, of_parent: u32) -> Option<String> {
        if !self.have(owner) {
            Some(format!("it belongs to the user {owner}, who could replace the traces in it"))
        } else if !self.have(of_parent) {
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
        assert_eq!(owners.object(7, 0), None);
        assert_eq!(owners.object(0, 7), None);
        assert!(owners.object(8, 7).unwrap().starts_with("it belongs to the user 8"));
        assert!(owners.object(7, 8).unwrap().starts_with("its parent directory belongs to the user 8"));
        assert!(Owners { user: 0, root: 0 }.object(8, 0).is_some(), "root trusts no other user");
        assert_eq!(Owners { user: 7, root: 65_534 }.object(7, 65_534), None, "root, seen from a user namespace");
    }
}
