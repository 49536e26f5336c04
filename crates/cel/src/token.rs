//! The lexer: text to tokens, each with its offset in characters. Must not know the grammar.

use crate::issue::Issue;

/// One word of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    /// A name, or a word such as `true` and `in`.
    Ident(String),
    /// A whole number, with the sign left to the parser.
    Int(u64),
    /// A whole number that ends in `u`.
    Uint(u64),
    /// A number with a fraction or an exponent.
    Double(f64),
    /// A string without its quotes and escapes.
    String(String),
    /// A byte string.
    Bytes(Vec<u8>),
    /// An operator or a bracket.
    Symbol(&'static str),
    /// Nothing comes after it.
    End,
}

/// A token and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Placed {
    pub token: Token,
    pub at: usize,
}

/// Longer ones go before those they begin with.
const SYMBOLS: [&str; 27] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "+", "-", "*", "/", "%", "(", ")", "[", "]", "{", "}",
    ".", ",", "?", ":", "=", "&", "|",
];

/// The tokens of a text, the last of which is `End`, and what is no token.
pub(crate) fn tokens(source: &str) -> (Vec<Placed>, Vec<Issue>) {
    let text: Vec<char> = source.chars().collect();
    let mut scanner = Scanner { text: &text, at: 0 };
    let (mut all, mut issues) = (Vec::new(), Vec::new());
    loop {
        scanner.skip_space();
        let at = scanner.at;
        match scanner.next() {
            Ok(token) => {
                let is_end = token == Token::End;
                all.push(Placed { token, at });
                if is_end {
                    return (all, issues);
                }
            }
            Err(issue) => {
                // The rest is read too, for what else is wrong with it, unless much is.
                scanner.at = if issues.len() < ISSUES_MAX { scanner.at.max(at + 1) } else { text.len() };
                issues.push(issue);
            }
        }
    }
}

/// At most so many invalid tokens are reported.
const ISSUES_MAX: usize = 10;

struct Scanner<'a> {
    text: &'a [char],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn skip_space(&mut self) {
        while let Some(letter) = self.peek(0) {
            if letter == '/' && self.peek(1) == Some('/') {
                while self.peek(0).is_some_and(|letter| letter != '\n') {
                    self.at += 1;
                }
            } else if matches!(letter, ' ' | '\t' | '\n' | '\r' | '\u{c}') {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    fn next(&mut self) -> Result<Token, Issue> {
        let Some(first) = self.peek(0) else { return Ok(Token::End) };
        if let Some(quoted) = self.quoted()? {
            return Ok(quoted);
        }
        let dotted = first == '.' && self.peek(1).is_some_and(|next| next.is_ascii_digit());
        if first.is_ascii_digit() || dotted {
            return self.number();
        }
        if first.is_ascii_alphabetic() || first == '_' {
            return Ok(Token::Ident(self.word()));
        }
        let symbol = SYMBOLS.iter().find(|symbol| {
            symbol.chars().enumerate().all(|(ahead, letter)| self.peek(ahead) == Some(letter))
        });
        match symbol {
            Some(&("=" | "&" | "|")) | None => Err(self.unknown(self.at, 1)),
            Some(symbol) => {
                self.at += symbol.len();
                Ok(Token::Symbol(symbol))
            }
        }
    }

    /// What no token begins with, and what comes after it as far as it was looked at: both are passed.
    fn unknown(&mut self, at: usize, more: usize) -> Issue {
        let at = at.min(self.text.len());
        let end = (at + 1).saturating_add(more).min(self.text.len());
        let shown: String = self.text[at..end].iter().collect();
        self.at = end;
        Issue::syntax(at, format!("token recognition error at: '{shown}'"))
    }

    fn word(&mut self) -> String {
        let begin = self.at;
        while self.peek(0).is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
            self.at += 1;
        }
        self.text[begin..self.at].iter().collect()
    }

    fn digits(&mut self) {
        while self.peek(0).is_some_and(|letter| letter.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn number(&mut self) -> Result<Token, Issue> {
        let begin = self.at;
        if self.peek(0) == Some('0') && matches!(self.peek(1), Some('x' | 'X')) {
            self.at += 2;
            let word = self.word();
            let (digits, unsigned) = suffixed(&word);
            let invalid = || Issue::new(begin, "invalid int literal".to_owned());
            let number = u64::from_str_radix(digits, 16).map_err(|_| invalid())?;
            return Ok(if unsigned { Token::Uint(number) } else { Token::Int(number) });
        }
        self.digits();
        let mut is_double = false;
        if self.peek(0) == Some('.') && self.peek(1).is_some_and(|next| next.is_ascii_digit()) {
            is_double = true;
            self.at += 1;
            self.digits();
        }
        let exponent = match (self.peek(0), self.peek(1), self.peek(2)) {
            (Some('e' | 'E'), Some('+' | '-'), Some(digit)) if digit.is_ascii_digit() => 2,
            (Some('e' | 'E'), Some(digit), _) if digit.is_ascii_digit() => 1,
            _ => 0,
        };
        if exponent > 0 {
            is_double = true;
            self.at += exponent;
            self.digits();
        }
        let text: String = self.text[begin..self.at].iter().collect();
        let unsigned = !is_double && matches!(self.peek(0), Some('u' | 'U'));
        let invalid = |kind: &str| Issue::new(begin, format!("invalid {kind} literal"));
        if unsigned {
            self.at += 1;
            return text.parse().map(Token::Uint).map_err(|_| invalid("uint"));
        }
        match is_double {
            true => text.parse().map(Token::Double).map_err(|_| invalid("double")),
            false => text.parse().map(Token::Int).map_err(|_| invalid("int")),
        }
    }

    /// A string or a byte string, if one begins here.
    fn quoted(&mut self) -> Result<Option<Token>, Issue> {
        let mut ahead = 0;
        let (mut raw, mut bytes) = (false, false);
        loop {
            match self.peek(ahead) {
                Some('r' | 'R') if !raw => raw = true,
                Some('b' | 'B') if !bytes => bytes = true,
                Some(quote @ ('"' | '\'')) => {
                    let begin = self.at;
                    self.at += ahead;
                    let content = self.content(quote, raw, begin)?;
                    return Ok(Some(match bytes {
                        true => Token::Bytes(content.into_iter().flat_map(Piece::bytes).collect()),
                        false => Token::String(content.into_iter().map(Piece::letter).collect()),
                    }));
                }
                _ => return Ok(None),
            }
            ahead += 1;
        }
    }

    /// What is between the quotes, the first of which is next.
    fn content(&mut self, quote: char, raw: bool, begin: usize) -> Result<Vec<Piece>, Issue> {
        let long = self.peek(1) == Some(quote) && self.peek(2) == Some(quote);
        self.at += if long { 3 } else { 1 };
        let mut content = Vec::new();
        loop {
            let ends = match long {
                true => (0..3).all(|ahead| self.peek(ahead) == Some(quote)),
                false => self.peek(0) == Some(quote),
            };
            if ends {
                self.at += if long { 3 } else { 1 };
                return Ok(content);
            }
            match self.peek(0) {
                None => return Err(self.unknown(begin, self.text.len())),
                Some('\n' | '\r') if !long => return Err(self.unknown(begin, self.at - begin)),
                Some('\\') if !raw => content.push(self.escape()?),
                Some(letter) => {
                    content.push(Piece::Letter(letter));
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self) -> Result<Piece, Issue> {
        let at = self.at;
        let kind = self.peek(1).unwrap_or(' ');
        self.at += 2;
        let simple = match kind {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' | '?' | '"' | '\'' | '`' => kind,
            'x' | 'X' => return self.code(2, 16, at).map(Piece::Code),
            'u' => return self.code(4, 16, at).map(Piece::Code),
            'U' => return self.code(8, 16, at).map(Piece::Code),
            '0'..='3' => {
                self.at -= 1;
                return self.code(3, 8, at).map(Piece::Code);
            }
            _ => return Err(self.unknown(at, 1)),
        };
        Ok(Piece::Letter(simple))
    }

    fn code(&mut self, digits: usize, base: u32, at: usize) -> Result<u32, Issue> {
        let text: String = self.text.iter().skip(self.at).take(digits).collect();
        self.at += digits;
        let code = (text.len() == digits).then(|| u32::from_str_radix(&text, base).ok()).flatten();
        code.filter(|code| char::from_u32(*code).is_some())
            .ok_or_else(|| self.unknown(at.min(self.text.len()), 1))
    }
}

/// A letter of a string, or a number that was escaped: in byte strings the number is a byte.
enum Piece {
    Letter(char),
    Code(u32),
}

impl Piece {
    fn letter(self) -> char {
        match self {
            Self::Letter(letter) => letter,
            Self::Code(code) => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
        }
    }

    fn bytes(self) -> Vec<u8> {
        if let Self::Code(code) = self
            && let Ok(byte) = u8::try_from(code)
        {
            return vec![byte];
        }
        self.letter().to_string().into_bytes()
    }
}

fn suffixed(word: &str) -> (&str, bool) {
    match word.strip_suffix(['u', 'U']) {
        Some(digits) => (digits, true),
        None => (word, false),
    }
}
