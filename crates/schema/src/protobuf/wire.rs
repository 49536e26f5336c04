//! The protobuf wire format: bytes into numbered fields. Must not know what a field means.

use super::DecodeError;

/// One value as it lies on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

/// Reads the fields of one message.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next field's number and value; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, DecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number != 0);
        let number = number.ok_or(DecodeError::Malformed("illegal tag"))?;
        let wire = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(self.fixed64()?),
            2 => Wire::Bytes(self.length_delimited()?),
            5 => {
                self.take(4)?;
                Wire::Fixed32
            }
            _ => return Err(DecodeError::Malformed("illegal wireType")),
        };
        Ok(Some((number, wire)))
    }

    pub(super) fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0_u64;
        for (place, byte) in self.rest.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[place + 1..];
                return Ok(value);
            }
        }
        match self.rest.len() {
            0..10 => Err(DecodeError::Malformed("unexpected EOF")),
            _ => Err(DecodeError::Malformed("integer overflow")),
        }
    }

    fn fixed64(&mut self) -> Result<u64, DecodeError> {
        let bytes = self.take(8)?;
        Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn length_delimited(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
        self.take(length)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) =
            self.rest.split_at_checked(length).ok_or(DecodeError::Malformed("unexpected EOF"))?;
        self.rest = rest;
        Ok(taken)
    }
}
