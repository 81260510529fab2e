/// Finds the blank line that ends a head, and also a body in chunks. Those before its first byte end nothing (RFC 9112
/// section 2.2).
#[derive(Default)]
pub(crate) struct BlankLine {
    searched: usize,
    last: LastBytes,
    /// Where the first blank line ends among the received bytes.
    pub(crate) end: Option<usize>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum LastBytes {
    #[default]
    None,
    Other,
    Newline,
    NewlineAndReturn,
}

impl BlankLine {
    /// Searches the bytes that were not searched before, up to the first blank line.
    pub(crate) fn search(&mut self, received: &[u8]) {
        if self.end.is_some() {
            return;
        }
        for byte in received.get(self.searched..).unwrap_or_default() {
            self.searched += 1;
            self.last = match (byte, self.last) {
                (b'\r' | b'\n', LastBytes::None) => LastBytes::None,
                (b'\n', LastBytes::Other) => LastBytes::Newline,
                (b'\n', _) => {
                    self.end = Some(self.searched);
                    return;
                }
                (b'\r', LastBytes::Newline) => LastBytes::NewlineAndReturn,
                _ => LastBytes::Other,
            };
        }
    }

    /// Forgets the first `count` of the received bytes. Returns whether they were everything up to a blank line.
    pub(crate) fn advance(&mut self, count: usize) -> bool {
        self.searched = self.searched.saturating_sub(count);
        if self.end.is_some_and(|end| end <= count) {
            *self = Self::default();
            return true;
        }
        self.end = self.end.map(|end| end - count);
        false
    }
}
