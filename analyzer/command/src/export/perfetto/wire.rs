//! Encodes protocol buffers: the part of the wire format that a trace needs.

#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// Adds an unsigned number, a bool or a value of an enumeration.
    pub(super) fn number(mut self, field: u32, value: u64) -> Self {
        self.varint(u64::from(field) << 3);
        self.varint(value);
        self
    }

    pub(super) fn text(self, field: u32, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    pub(super) fn message(self, field: u32, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    /// Adds the fields of another message.
    pub(super) fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_strings_match_the_examples_of_the_encoding_guide() {
        // https://protobuf.dev/programming-guides/encoding: field 1 is 150, field 2 "testing", field 3 the first.
        let first = Message::default().number(1, 150);
        assert_eq!(first.as_bytes(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::default().text(2, "testing").as_bytes(), b"\x12\x07testing");
        assert_eq!(Message::default().message(3, &first).as_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        assert_eq!(Message::default().number(60, u64::MAX).as_bytes().len(), 12);
    }
}
