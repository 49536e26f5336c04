//! Text layout for a terminal and a pipe: wrapped lines, aligned columns, and colour only on a terminal. Knows nothing
//! of the content.

use std::io::IsTerminal as _;

/// The width of a terminal that does not tell.
const COLUMNS: usize = 80;
/// Narrower than this nothing can be laid out.
const WIDTH_MIN: usize = 40;
/// How narrow the last column of a table may become before others give way.
const LAST_COLUMN_WIDTH_MIN: usize = 20;
/// How many spaces stand between two columns of a table, as in kubectl's, and where that is too wide.
const COLUMN_GAPS: [usize; 3] = [3, 2, 1];

/// Whether there is colour.
#[derive(Clone, Copy)]
pub struct Paint(bool);

impl Paint {
    /// Never coloured.
    #[cfg(test)]
    pub const NONE: Self = Self(false);

    /// Coloured if stdout is a terminal and `NO_COLOR` is not set.
    pub fn of_stdout() -> Self {
        Self(std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none())
    }

    /// The same for stderr.
    pub fn of_stderr() -> Self {
        Self(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
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
    said.map_or(COLUMNS, |said| said.max(WIDTH_MIN))
}

/// A text behind a label, broken between words so that each line fits; further lines begin under the first.
pub fn wrapped(label: &str, text: &str) -> String {
    wrapped_at(label, text, columns())
}

/// What is said on stderr behind a label: on a terminal its lines fit, in a file they are as they are.
pub fn labelled(label: &str, text: &str) -> String {
    if !std::io::stderr().is_terminal() {
        return format!("{label}{text}");
    }
    let mut lines = text.lines();
    let first = wrapped(label, lines.next().unwrap_or_default());
    let rest = lines.map(|line| {
        let words = line.trim_start();
        wrapped(&line[..line.len() - words.len()], words)
    });
    std::iter::once(first).chain(rest).collect::<Vec<_>>().join("\n")
}

fn wrapped_at(label: &str, text: &str, columns: usize) -> String {
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

/// A few of many names, and how many more there are.
pub fn some_of<T: AsRef<str>>(names: &[T], most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(most) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Rows whose columns line up. On a terminal they fit, as far as names allow; in a pipe a row is a line.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let is_seen = std::io::stdout().is_terminal() || std::env::var_os("COLUMNS").is_some();
    table_within(header, rows, if is_seen { columns() } else { usize::MAX })
}

/// The same in so many columns: what is between columns gives way first, then the last column is broken, and then
/// what stands behind the longest names goes to the next line.
pub fn table_within(header: &[&str], rows: &[Vec<String>], columns: usize) -> String {
    let header: Vec<String> = header.iter().map(|title| (*title).to_owned()).collect();
    let all: Vec<&[String]> =
        std::iter::once(header.as_slice()).chain(rows.iter().map(Vec::as_slice)).collect();
    let mut widths: Vec<usize> = vec![0; header.len()];
    for row in &all {
        for (width, cell) in widths.iter_mut().zip(*row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let between = header.len().saturating_sub(1);
    let whole = |gap: &usize| widths.iter().sum::<usize>() + gap * between;
    let gap = COLUMN_GAPS.into_iter().find(|gap| whole(gap) <= columns).unwrap_or(1);
    let needed = whole(&gap) - widths.last().map_or(0, |last| last.saturating_sub(LAST_COLUMN_WIDTH_MIN));
    let over = needed.saturating_sub(columns);
    if let Some((place, width)) = widths.iter_mut().enumerate().take(between).max_by_key(|(_, width)| **width)
    {
        *width = width.saturating_sub(over).max(header[place].chars().count());
    }
    let starts: Vec<usize> =
        (0..widths.len()).map(|place| widths[..place].iter().sum::<usize>() + gap * place).collect();
    all.into_iter().map(|row| line(row, &starts, columns)).collect()
}

fn line(row: &[String], starts: &[usize], columns: usize) -> String {
    let (mut done, mut line) = (String::new(), String::new());
    for (place, (cell, start)) in row.iter().zip(starts).enumerate() {
        let width = line.chars().count();
        if place > 0 && width >= *start {
            done += &format!("{}\n", line.trim_end());
            line = " ".repeat(*start);
        } else {
            line += &" ".repeat(start - width);
        }
        match place + 1 == row.len() {
            true => line = wrapped_at(&line, cell, columns),
            false => line += cell,
        }
    }
    format!("{done}{}\n", line.trim_end())
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

    #[test]
    fn a_table_gives_way_where_it_can() {
        let rows = [vec!["web".to_owned(), "2".to_owned(), "waits for a change".to_owned()]];
        let check = |columns: usize, expected: &str| {
            assert_eq!(table_within(&["NAME", "N", "STATE"], &rows, columns), expected, "{columns}");
        };
        check(80, "NAME   N   STATE\nweb    2   waits for a change\n");
        check(27, "NAME  N  STATE\nweb   2  waits for a change\n");
        check(25, "NAME N STATE\nweb  2 waits for a change\n");
        check(24, "NAME N STATE\nweb  2 waits for a\n       change\n");
        let rows = [
            vec!["short".to_owned(), "2".to_owned(), "yes".to_owned()],
            vec!["quite-a-long-name".to_owned(), "2".to_owned(), "no".to_owned()],
        ];
        let text = table_within(&["NAME", "N", "READY"], &rows, 20);
        assert_eq!(text, "NAME         N READY\nshort        2 yes\nquite-a-long-name\n             2 no\n");
    }

    #[test]
    fn a_few_of_many_names_are_told() {
        assert_eq!(some_of(&["a", "b"], 2), "a, b");
        assert_eq!(some_of(&["a", "b", "c"], 1), "a and 2 more");
        assert_eq!(some_of::<&str>(&[], 1), "");
    }
}
