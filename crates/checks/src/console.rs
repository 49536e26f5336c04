//! Documents with terminal sessions: in their `console` blocks a line behind `$ ` is a command, the lines after it are
//! its output. Parses them, compares them with current output, and rewrites them. Runs nothing itself.

/// A document, piece by piece.
pub struct Document(Vec<Piece>);

enum Piece {
    /// What is only read: one line.
    Text(String),
    Typed(Typed),
}

/// A command and what it printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    /// As it is typed, with the lines of its here-document.
    pub command: String,
    /// What the document says that it prints.
    pub printed: String,
}

/// The prompt in front of a typed command.
const PROMPT: &str = "$ ";
/// How the blocks begin.
const FENCE: &str = "```console";
/// Where a here-document begins and ends.
const HERE: &str = "EOF";

impl Document {
    /// Reads a document.
    pub fn read(text: &str) -> Self {
        let mut pieces = Vec::new();
        let (mut inside, mut here) = (false, false);
        for line in text.lines() {
            if line.starts_with("```") {
                inside = line == FENCE;
            }
            match pieces.last_mut() {
                Some(Piece::Typed(typed)) if here => {
                    typed.command += &format!("\n{line}");
                    here = line != HERE;
                }
                _ if inside && line.starts_with(PROMPT) => {
                    here = line.contains(&format!("<<{HERE}"));
                    let command = line.trim_start_matches(PROMPT).to_owned();
                    pieces.push(Piece::Typed(Typed { command, printed: String::new() }));
                }
                Some(Piece::Typed(typed)) if inside => typed.printed += &format!("{line}\n"),
                _ => pieces.push(Piece::Text(line.to_owned())),
            }
        }
        Self(pieces)
    }

    /// Every command, in the order in which they are typed.
    pub fn typed(&mut self) -> impl Iterator<Item = &mut Typed> {
        self.0.iter_mut().filter_map(|piece| match piece {
            Piece::Typed(typed) => Some(typed),
            Piece::Text(_) => None,
        })
    }

    /// The document as text.
    pub fn text(&self) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(line) => format!("{line}\n"),
            Piece::Typed(Typed { command, printed }) => format!("{PROMPT}{command}\n{printed}"),
        };
        self.0.iter().map(piece).collect()
    }
}

/// True if two texts differ in nothing but what differs each time: ages, moments, digests, ports of this machine, and
/// the width of the columns that these stand in.
pub fn is_same(one: &str, other: &str) -> bool {
    lasting(one) == lasting(other)
}

/// What of a text is the same each time.
fn lasting(text: &str) -> Vec<String> {
    let line = |line: &str| line.split_whitespace().map(lasting_word).collect::<Vec<_>>().join(" ");
    text.trim_end().lines().map(line).collect()
}

fn lasting_word(word: &str) -> String {
    if is_age(word) {
        return "AGE".to_owned();
    }
    if let Some(port) = word.strip_prefix("https://127.0.0.1:")
        && port.bytes().all(|byte| byte.is_ascii_digit())
    {
        return "https://127.0.0.1:PORT".to_owned();
    }
    let (core, end) = match word.strip_suffix(['.', ',', ')']) {
        Some(core) => (core, &word[core.len()..]),
        None => (word, ""),
    };
    if core.parse::<jiff::Timestamp>().is_ok() {
        return format!("TIME{end}");
    }
    let is_digest = |part: &str| part.len() >= 16 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts = word.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric());
    let lasting = parts.map(|part| {
        let plain = part.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
        if is_digest(plain) { part.replace(plain, "DIGEST") } else { part.to_owned() }
    });
    lasting.collect()
}

/// `5s`, `2m10s`, `3h`, as kubectl prints how old something is.
fn is_age(word: &str) -> bool {
    let mut digits = 0;
    for letter in word.chars() {
        match letter {
            '0'..='9' => digits += 1,
            'd' | 'h' | 'm' | 's' if digits > 0 => digits = 0,
            _ => return false,
        }
    }
    digits == 0 && !word.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "A\n```console\n$ ls\na\n\nb\n$ cat > f <<EOF\n$ x\nEOF\n$ end\n```\nB\n```sh\n$ no\n```\n";

    #[test]
    fn what_was_typed_and_what_was_printed_is_told_apart() {
        let mut document = Document::read(TEXT);
        assert_eq!(document.text(), TEXT);
        let typed: Vec<(&str, &str)> =
            document.typed().map(|typed| (typed.command.as_str(), typed.printed.as_str())).collect();
        assert_eq!(typed, [("ls", "a\n\nb\n"), ("cat > f <<EOF\n$ x\nEOF", ""), ("end", "")]);
    }

    #[test]
    fn only_what_differs_each_time_may_differ() {
        let check = |one: &str, other: &str, expected: bool| {
            assert_eq!(is_same(one, other), expected, "{one:?} {other:?}");
        };
        check("web   1/1   5s\n", "web   1/1   2m10s", true);
        check("web   1/1   5s", "web   0/1   5s", false);
        check("until 2026-01-01T00:00:00Z, then", "until 2026-02-01T10:00:00Z, then", true);
        check("plan=8d2f6f0e3b5c7a194c0e5d27b1a6f390", "plan=00000000000000000000000000000000", true);
        check("plan=8d2f", "plan=8d2e", false);
        check("server: https://127.0.0.1:6500 (x)", "server: https://127.0.0.1:34017 (x)", true);
        check("a\nb", "a b", false);
        check("s", "5s", false);
    }
}
