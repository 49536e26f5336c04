//! The committed file: deflated text, the kinds on its first line and one definition on each other
//! line. Only finds lines; must not know what is in them.

use std::io::Read;

use flate2::read::DeflateDecoder;

/// The lines of the file, without a copy of any.
pub(super) struct Table {
    kinds: &'static str,
    definitions: Vec<(&'static str, &'static str)>,
    named: usize,
}

impl Table {
    pub(super) fn new(deflated: &[u8]) -> Self {
        // Leaked once per process, so that names out of the table can be `&'static str`.
        let text: &'static str = Box::leak(inflate(deflated).into_boxed_str());
        let mut lines = text.lines();
        let kinds = lines.next().unwrap_or("[]");
        let definitions: Vec<_> = lines.filter_map(|line| line.split_once('\t')).collect();
        let named = definitions.partition_point(|(name, _)| !name.is_empty());
        Self { kinds, definitions, named }
    }

    pub(super) fn kinds(&self) -> &'static str {
        self.kinds
    }

    pub(super) fn definitions(&self) -> impl Iterator<Item = &(&'static str, &'static str)> {
        self.definitions.iter()
    }

    pub(super) fn index(&self, name: &str) -> Option<u16> {
        let place = self.definitions[..self.named].binary_search_by(|(other, _)| (*other).cmp(name)).ok()?;
        u16::try_from(place).ok()
    }

    pub(super) fn name(&self, index: u16) -> Option<&'static str> {
        self.definitions[..self.named].get(usize::from(index)).map(|(name, _)| *name)
    }

    pub(super) fn source(&self, index: u16) -> Option<&'static str> {
        self.definitions.get(usize::from(index)).map(|(_, source)| *source)
    }
}

/// The text of a committed data file.
pub fn inflate(deflated: &[u8]) -> String {
    let mut text = String::new();
    DeflateDecoder::new(deflated).read_to_string(&mut text).expect("the committed file is tested to inflate");
    text
}
