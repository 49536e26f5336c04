//! Rewrites a regular expression from Go's syntax to that of the `regex` crate. The two differ in what
//! `\d`, `\w` and `\s` cover (ASCII in Go), in brackets inside classes, and in which braces are text.

use std::fmt;

/// Why an expression is none, in Go's words.
#[derive(Debug, PartialEq)]
pub(super) struct Fault {
    reason: &'static str,
    part: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "error parsing regexp: {}: `{}`", self.reason, self.part)
    }
}

fn fault<T>(reason: &'static str, part: impl Into<String>) -> Result<T, Fault> {
    Err(Fault { reason, part: part.into() })
}

const REPEAT_MAX: u32 = 1000;

/// The same expression for the `regex` crate.
pub(super) fn for_rust(source: &str) -> Result<String, Fault> {
    let mut rewriter =
        Rewriter { source, rest: source, out: String::new(), open: 0, before: Before::Nothing };
    while !rewriter.rest.is_empty() {
        rewriter.step()?;
    }
    match rewriter.open {
        0 => Ok(rewriter.out),
        _ => fault("missing closing )", source),
    }
}

/// What a repetition operator would apply to.
#[derive(Clone, Copy)]
enum Before<'a> {
    Nothing,
    Something,
    /// A repetition; its source from here on.
    Repetition(&'a str),
}

struct Rewriter<'a> {
    source: &'a str,
    rest: &'a str,
    out: String,
    open: usize,
    before: Before<'a>,
}

impl<'a> Rewriter<'a> {
    fn step(&mut self) -> Result<(), Fault> {
        let letter = self.rest.chars().next().unwrap_or_default();
        match letter {
            '\\' => self.escape(),
            '[' => self.class(),
            '(' => self.group(),
            ')' => self.close(),
            '|' => {
                self.copy(1);
                self.before = Before::Nothing;
                Ok(())
            }
            '*' | '+' | '?' => self.repetition(1, None),
            '{' => self.brace(),
            _ => {
                self.copy(letter.len_utf8());
                self.before = Before::Something;
                Ok(())
            }
        }
    }

    fn copy(&mut self, bytes: usize) {
        let (head, tail) = self.rest.split_at(bytes);
        self.out.push_str(head);
        self.rest = tail;
    }

    fn group(&mut self) -> Result<(), Fault> {
        let Some(inner) = self.rest.strip_prefix("(?") else {
            self.enter(1);
            return Ok(());
        };
        if inner.starts_with("P<") || inner.starts_with('<') {
            let Some(end) = inner.find('>') else { return fault("invalid named capture", self.rest) };
            let name = &inner[inner.find('<').unwrap_or(0) + 1..end];
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if name.is_empty() || !name.bytes().all(is_word) {
                return fault("invalid named capture", &self.rest[..2 + end + 1]);
            }
            // Go allows a group name that starts with a digit and the crate does not. The name is never used here.
            self.out.push('(');
            self.rest = &inner[end + 1..];
            self.open += 1;
            self.before = Before::Nothing;
            return Ok(());
        }
        let flags = inner.find(|letter: char| !"imsU-".contains(letter)).unwrap_or(inner.len());
        match inner[flags..].chars().next() {
            Some(')') => self.copy(2 + flags + 1),
            Some(':') => self.enter(2 + flags + 1),
            None => return fault("invalid or unsupported Perl syntax", self.rest),
            Some(other) => {
                let end = 2 + flags + other.len_utf8();
                return fault("invalid or unsupported Perl syntax", &self.rest[..end]);
            }
        }
        Ok(())
    }

    fn enter(&mut self, bytes: usize) {
        self.copy(bytes);
        self.open += 1;
        self.before = Before::Nothing;
    }

    fn close(&mut self) -> Result<(), Fault> {
        if self.open == 0 {
            return fault("unexpected )", self.source);
        }
        self.open -= 1;
        self.copy(1);
        self.before = Before::Something;
        Ok(())
    }

    /// `{2}`, `{2,}` and `{2,3}` repeat; any other brace is text.
    fn brace(&mut self) -> Result<(), Fault> {
        let counts = self.rest.find('}').and_then(|end| Some((end + 1, counts(&self.rest[1..end])?)));
        match counts {
            Some((bytes, counts)) => self.repetition(bytes, Some(counts)),
            None => {
                self.out.push('\\');
                self.copy(1);
                self.before = Before::Something;
                Ok(())
            }
        }
    }

    fn repetition(&mut self, bytes: usize, counts: Option<(u32, Option<u32>)>) -> Result<(), Fault> {
        let start = self.rest;
        if let Some((least, most)) = counts {
            let most = most.unwrap_or(least);
            if least > REPEAT_MAX || most > REPEAT_MAX || most < least {
                return fault("invalid repeat count", &start[..bytes]);
            }
        }
        match self.before {
            Before::Nothing => return fault("missing argument to repetition operator", &start[..bytes]),
            Before::Repetition(first) => {
                let end = first.len() - start.len() + bytes;
                return fault("invalid nested repetition operator", &first[..end]);
            }
            Before::Something => {}
        }
        self.copy(bytes);
        if self.rest.starts_with('?') {
            self.copy(1);
        }
        self.before = Before::Repetition(start);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Fault> {
        self.before = Before::Something;
        if let Some(quoted) = self.rest.strip_prefix("\\Q") {
            let end = quoted.find("\\E").unwrap_or(quoted.len());
            self.out.push_str(&regex::escape(&quoted[..end]));
            self.rest = quoted[end..].strip_prefix("\\E").unwrap_or(&quoted[end..]);
            return Ok(());
        }
        let (text, bytes) = match self.rest.chars().nth(1) {
            Some('d') => (String::from("[0-9]"), 2),
            Some('D') => (String::from("[^0-9]"), 2),
            Some('w') => (String::from("[0-9A-Za-z_]"), 2),
            Some('W') => (String::from("[^0-9A-Za-z_]"), 2),
            Some('s') => (String::from("[\\t\\n\\f\\r ]"), 2),
            Some('S') => (String::from("[^\\t\\n\\f\\r ]"), 2),
            Some('b') => (String::from("(?-u:\\b)"), 2),
            Some(letter @ ('A' | 'B' | 'z')) => (format!("\\{letter}"), 2),
            _ => literal(self.rest)?,
        };
        self.out.push_str(&text);
        self.rest = &self.rest[bytes..];
        Ok(())
    }

    fn class(&mut self) -> Result<(), Fault> {
        let whole = self.rest;
        self.copy(1);
        if self.rest.starts_with('^') {
            self.copy(1);
        }
        let mut first = true;
        loop {
            match self.rest.chars().next() {
                None => return fault("missing closing ]", whole),
                Some(']') if !first => break,
                Some(_) => self.class_item(whole)?,
            }
            first = false;
        }
        self.copy(1);
        self.before = Before::Something;
        Ok(())
    }

    /// One letter, range or named set inside a class.
    fn class_item(&mut self, whole: &str) -> Result<(), Fault> {
        if self.rest.starts_with("[:")
            // In `[:]` the colon is not both the first and the last one.
            && let Some(end) = self.rest[2..].find(":]").map(|at| at + 2)
        {
            let name = &self.rest[..end + 2];
            if !NAMED.contains(&name[2..end].trim_start_matches('^')) {
                return fault("invalid character class range", name);
            }
            self.copy(end + 2);
            return Ok(());
        }
        let set = match self.rest.get(..2) {
            Some("\\d") => Some("0-9"),
            Some("\\w") => Some("0-9A-Za-z_"),
            Some("\\s") => Some("\\t\\n\\f\\r "),
            Some("\\D") => Some("[^0-9]"),
            Some("\\W") => Some("[^0-9A-Za-z_]"),
            Some("\\S") => Some("[^\\t\\n\\f\\r ]"),
            _ => None,
        };
        if let Some(set) = set {
            self.out.push_str(set);
            self.rest = &self.rest[2..];
            return Ok(());
        }
        let start = self.rest;
        let low = self.class_letter(whole)?;
        let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]") && low.is_some();
        if !is_range {
            return Ok(());
        }
        self.copy(1);
        if self.rest.is_empty() {
            return fault("missing closing ]", whole);
        }
        let high = self.class_letter(whole)?;
        match (low, high) {
            (Some(low), Some(high)) if low <= high => Ok(()),
            _ => fault("invalid character class range", &start[..start.len() - self.rest.len()]),
        }
    }

    /// One letter inside a class, escaped as the crate wants it; none for `\p{…}`, which starts no range.
    fn class_letter(&mut self, whole: &str) -> Result<Option<char>, Fault> {
        let letter = self.rest.chars().next().unwrap_or_default();
        if letter == '\\' {
            if self.rest.len() == 1 {
                return fault("missing closing ]", whole);
            }
            let (text, bytes) = literal(self.rest)?;
            self.out.push_str(&text);
            self.rest = &self.rest[bytes..];
            return Ok(letter_of(&text));
        }
        if "[]&~-^".contains(letter) {
            self.out.push('\\');
        }
        self.copy(letter.len_utf8());
        Ok(Some(letter))
    }
}

const NAMED: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

fn counts(inner: &str) -> Option<(u32, Option<u32>)> {
    let number = |text: &str| -> Option<u32> {
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| text.parse().unwrap_or(u32::MAX))
    };
    match inner.split_once(',') {
        None => Some((number(inner)?, None)),
        Some((least, "")) => Some((number(least)?, None)),
        Some((least, most)) => Some((number(least)?, Some(number(most)?))),
    }
}

/// An escape that means one letter, or a Unicode class: its text for the crate and its length in Go's.
fn literal(rest: &str) -> Result<(String, usize), Fault> {
    let Some(letter) = rest.chars().nth(1) else {
        return fault("trailing backslash at end of expression", "");
    };
    let bytes = 1 + letter.len_utf8();
    match letter {
        'p' | 'P' => unicode_class(rest),
        'x' => hexadecimal(rest),
        '0'..='7' => octal(rest),
        'a' | 'f' | 'n' | 'r' | 't' | 'v' => Ok((format!("\\{letter}"), bytes)),
        '<' | '>' => Ok((letter.to_string(), bytes)),
        _ if letter.is_ascii_punctuation() => Ok((format!("\\{letter}"), bytes)),
        _ if letter.is_ascii() && !letter.is_ascii_alphanumeric() => {
            Ok((format!("\\x{{{:x}}}", letter as u32), bytes))
        }
        _ => fault("invalid escape sequence", &rest[..bytes]),
    }
}

fn unicode_class(rest: &str) -> Result<(String, usize), Fault> {
    let end = match rest[2..].chars().next() {
        Some('{') => rest.find('}').map(|end| end + 1),
        Some(letter) => Some(2 + letter.len_utf8()),
        None => None,
    };
    let Some(end) = end else { return fault("invalid character class range", rest) };
    let text = &rest[..end];
    match regex::Regex::new(text) {
        Ok(_) => Ok((text.to_owned(), end)),
        Err(_) => fault("invalid character class range", text),
    }
}

fn hexadecimal(rest: &str) -> Result<(String, usize), Fault> {
    let (digits, end) = match rest[2..].strip_prefix('{') {
        Some(inner) => match inner.find('}') {
            Some(close) => (&inner[..close], 3 + close + 1),
            None => return fault("invalid escape sequence", rest),
        },
        None => match rest.get(2..4) {
            Some(digits) => (digits, 4),
            None => return fault("invalid escape sequence", rest),
        },
    };
    match u32::from_str_radix(digits, 16).ok().and_then(char::from_u32) {
        Some(letter) => Ok((format!("\\x{{{:x}}}", letter as u32), end)),
        None => fault("invalid escape sequence", rest[..end].trim_end_matches('}')),
    }
}

/// `\0` and `\012`; `\1` alone would be a back reference, which Go does not know.
fn octal(rest: &str) -> Result<(String, usize), Fault> {
    let digits: String = rest[1..].chars().take(3).take_while(|digit| ('0'..='7').contains(digit)).collect();
    if !digits.starts_with('0') && digits.len() == 1 {
        return fault("invalid escape sequence", &rest[..2]);
    }
    let code = u32::from_str_radix(&digits, 8).unwrap_or_default();
    Ok((format!("\\x{{{code:x}}}"), 1 + digits.len()))
}

/// The letter that a rewritten escape stands for, if it stands for one.
fn letter_of(text: &str) -> Option<char> {
    let body = text.strip_prefix('\\').unwrap_or(text);
    match body {
        "a" => Some('\x07'),
        "f" => Some('\x0c'),
        "n" => Some('\n'),
        "r" => Some('\r'),
        "t" => Some('\t'),
        "v" => Some('\x0b'),
        _ => match body.strip_prefix("x{").and_then(|hex| hex.strip_suffix('}')) {
            Some(hex) => u32::from_str_radix(hex, 16).ok().and_then(char::from_u32),
            None if body.chars().count() == 1 => body.chars().next(),
            None => None,
        },
    }
}
