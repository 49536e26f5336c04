//! How a story looks on a terminal: 80 columns, and colour only where somebody sees it.

use crate::demo::changes::Mark;

const COLUMNS: usize = 80;

/// Whether there is colour.
#[derive(Clone, Copy)]
pub struct Paint(bool);

impl Paint {
    /// With colour or without.
    pub fn new(is_coloured: bool) -> Self {
        Self(is_coloured)
    }

    /// What has to be seen first.
    pub fn strong(self, text: &str) -> String {
        self.painted("1", text)
    }

    /// What changed, in the colour that says how.
    pub fn marked(self, mark: Mark, text: &str) -> String {
        match mark {
            Mark::New => self.painted("32", text),
            Mark::Changed => self.painted("33", text),
            Mark::Gone => self.painted("31", text),
            Mark::Same => text.to_owned(),
        }
    }

    fn painted(self, code: &str, text: &str) -> String {
        match self.0 {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }
}

/// A text behind a label, broken between words so that each line fits; further lines begin under the first.
pub fn wrapped(label: &str, text: &str) -> String {
    let indent = label.chars().count();
    let mut lines: Vec<String> = Vec::new();
    let mut line = label.to_owned();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line);
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        let text = wrapped("1. ", &"seven77 ".repeat(12));
        let first = format!("1. {}", ["seven77"; 9].join(" "));
        let second = format!("   {}", ["seven77"; 3].join(" "));
        assert_eq!(text, format!("{first}\n{second}"));
        assert_eq!(wrapped("  a: ", ""), "  a: ");
        let long = "x".repeat(100);
        assert_eq!(wrapped("> ", &long), format!("> {long}"), "a word is never broken");
    }

    #[test]
    fn there_is_colour_only_where_it_is_wanted() {
        assert_eq!(Paint::new(false).marked(Mark::New, "text"), "text");
        assert_eq!(Paint::new(true).marked(Mark::New, "text"), "\u{1b}[32mtext\u{1b}[0m");
    }
}
