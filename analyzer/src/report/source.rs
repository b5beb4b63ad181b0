//! Paths of source files, relative to a repository and as URIs.

use std::{fmt::Write as _, path::Path};

/// The path of `file` relative to `root`; `None` if it is not below `root`. A relative path is returned unchanged.
pub(super) fn below<'a>(root: &Path, file: &'a str) -> Option<&'a str> {
    let path = Path::new(file);
    if path.is_relative() { Some(file) } else { path.strip_prefix(root).ok()?.to_str() }
}

/// A path as the path of a URI (RFC 3986): everything except letters, digits, `-._~` and slashes is percent-encoded.
pub(super) fn encoded(path: &str) -> String {
    path.bytes().fold(String::new(), |mut uri, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(byte)),
            _ => drop(write!(uri, "%{byte:02X}")),
        }
        uri
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_below_the_root_is_relative_to_it() {
        let root = Path::new("/home/me/app");
        assert_eq!(below(root, "/home/me/app/src/a.cpp"), Some("src/a.cpp"));
        assert_eq!(below(root, "src/a.cpp"), Some("src/a.cpp"));
        assert_eq!(below(root, "/home/me/apple/a.cpp"), None);
    }

    #[test]
    fn reserved_characters_in_a_path_are_percent_encoded() {
        assert_eq!(encoded("/a b/c:d?e#f%.cpp"), "/a%20b/c%3Ad%3Fe%23f%25.cpp");
        assert_eq!(encoded("ü"), "%C3%BC");
    }
}
