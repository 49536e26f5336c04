//! How text looks on a terminal and in a pipe: lines that fit, columns that line up, and colour only where
//! somebody sees it. Knows nothing of what the text says.

use std::io::IsTerminal as _;

/// The width of a terminal that does not tell.
const COLUMNS: usize = 80;
/// Narrower than this nothing can be laid out.
const COLUMNS_MIN: usize = 40;
/// What stands between two columns of a table, as in kubectl's.
const GAP: &str = "   ";

/// Whether there is colour.
#[derive(Clone, Copy)]
pub struct Paint(bool);

impl Paint {
    /// No colour, whoever looks.
    #[cfg(test)]
    pub const NONE: Self = Self(false);

    /// Without.
    #[cfg(test)]
    pub fn none() -> Self {
        Self(false)
    }

    /// With colour if stdout is a terminal and nobody asked for none.
    pub fn of_stdout() -> Self {
        Self(std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none())
    }

    /// What has to be seen first.
    pub fn strong(self, text: &str) -> String {
        self.painted("1", text)
    }

    /// What is as it should be, or comes to be.
    pub fn green(self, text: &str) -> String {
        self.painted("32", text)
    }

    /// What waits, or becomes different.
    pub fn yellow(self, text: &str) -> String {
        self.painted("33", text)
    }

    /// What is wrong, or goes.
    pub fn red(self, text: &str) -> String {
        self.painted("31", text)
    }

    fn painted(self, code: &str, text: &str) -> String {
        match self.0 {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }
}

/// How wide lines may be: what `COLUMNS` says, or else 80.
pub fn columns() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse::<usize>().ok());
    said.map_or(COLUMNS, |said| said.max(COLUMNS_MIN))
}

/// A text behind a label, broken between words so that each line fits; further lines begin under the first.
pub fn wrapped(label: &str, text: &str) -> String {
    let columns = columns();
    let indent = label.chars().count();
    let mut lines: Vec<String> = Vec::new();
    let mut line = label.to_owned();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > columns {
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

/// Rows whose columns line up; the last column is as long as it is.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = header.iter().map(|title| title.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let header = header.iter().map(|title| (*title).to_owned()).collect();
    std::iter::once(&header).chain(rows).map(|row| line(row, &widths)).collect()
}

fn line(row: &[String], widths: &[usize]) -> String {
    let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
    let line = cells.collect::<Vec<_>>().join(GAP);
    format!("{}\n", line.trim_end())
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
        assert_eq!(Paint(false).green("text"), "text");
        assert_eq!(Paint(true).green("text"), "\u{1b}[32mtext\u{1b}[0m");
    }

    #[test]
    fn columns_line_up_and_lines_end_where_their_text_ends() {
        let rows = [vec!["a".to_owned(), String::new()], vec!["longer".to_owned(), "x".to_owned()]];
        assert_eq!(table(&["NAME", "READY"], &rows), "NAME     READY\na\nlonger   x\n");
        assert_eq!(table(&["NAME"], &[]), "NAME\n");
    }
}
