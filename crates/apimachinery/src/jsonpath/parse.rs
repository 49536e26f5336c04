//! Parser of JSONPath, with client-go's error messages. Must not know how a path is evaluated.

use serde_json::Value;

use super::{Comparison, Filter, Slice, SliceEnd, Step};

/// Filters and unions hold paths: this deep and no deeper.
const NESTING_MAX: usize = 8;
/// A path in a CRD is a handful of characters; this bounds what one can cost.
const STEPS_MAX: usize = 256;

/// The steps of a path without its braces.
pub(super) fn steps(text: &str, nesting: usize) -> Result<Vec<Step>, String> {
    if nesting > NESTING_MAX {
        return Err(format!("paths may be nested {NESTING_MAX} deep"));
    }
    let mut reader = Reader { rest: text, nesting, steps: Vec::new() };
    while !reader.rest.is_empty() {
        reader.step()?;
        if reader.steps.len() > STEPS_MAX {
            return Err(format!("a path may have {STEPS_MAX} steps"));
        }
    }
    Ok(reader.steps)
}

struct Reader<'a> {
    rest: &'a str,
    nesting: usize,
    steps: Vec<Step>,
}

impl Reader<'_> {
    fn step(&mut self) -> Result<(), String> {
        let rest = self.rest;
        if let Some(after) = rest.strip_prefix("[?(") {
            return self.filter(after);
        }
        if let Some(after) = rest.strip_prefix("..") {
            return self.descend(after);
        }
        let Some(letter) = rest.chars().next() else { return Ok(()) };
        let after = &rest[letter.len_utf8()..];
        match letter {
            ' ' | '@' | '$' => {
                self.rest = after;
                Ok(())
            }
            '[' => self.bracket(after),
            '.' => {
                self.field(after);
                Ok(())
            }
            '"' | '\'' => self.quoted(letter, after),
            '+' | '-' | '0'..='9' => self.number(),
            '}' => Err(String::from("unexpected '}' in path")),
            '\r' | '\n' => Err(String::from("unclosed action")),
            _ if letter == '_' || letter.is_alphanumeric() => self.word(),
            other => Err(format!("unrecognized character in action: U+{:04X} '{other}'", u32::from(other))),
        }
    }

    fn field(&mut self, after: &str) {
        let (name, length) = name(after);
        // A lone dot asks for a field without a name, as in client-go.
        self.steps.push(match name.as_str() {
            "*" => Step::Wildcard,
            _ => Step::Field(name),
        });
        self.skip_to(after, length);
    }

    fn skip_to(&mut self, after: &str, length: usize) {
        let consumed = self.rest.len() - after.len() + length;
        self.rest = &self.rest[consumed..];
    }

    fn descend(&mut self, after: &str) -> Result<(), String> {
        if self.steps.last() == Some(&Step::Descend) {
            return Err(String::from("invalid multiple recursive descent"));
        }
        self.steps.push(Step::Descend);
        match after.starts_with(|letter: char| letter == '_' || letter == '*' || letter.is_alphanumeric()) {
            true => self.field(after),
            false => self.skip_to(after, 0),
        }
        Ok(())
    }

    fn bracket(&mut self, after: &str) -> Result<(), String> {
        let end = bracket_end(after).ok_or("unterminated array")?;
        let text = &after[..end];
        let step = match text.split(',').collect::<Vec<_>>()[..] {
            [_] => index(text)?,
            _ if is_quoted(text) => index(text)?,
            ref parts => {
                let parts = parts.iter().map(|part| steps(&format!("[{}]", part.trim()), self.nesting + 1));
                Step::Union(parts.collect::<Result<_, _>>()?)
            }
        };
        self.steps.push(step);
        self.skip_to(after, end + 1);
        Ok(())
    }

    fn filter(&mut self, after: &str) -> Result<(), String> {
        let end = filter_end(after).ok_or("unterminated filter")?;
        if !after[end + 1..].starts_with(']') {
            return Err(String::from("unclosed array expect ]"));
        }
        let (left, comparison, right) = compared(&after[..end])?;
        let left = steps(left, self.nesting + 1)?;
        let right = steps(right, self.nesting + 1)?;
        self.steps.push(Step::Filter(Filter { left, comparison, right }));
        self.skip_to(after, end + 2);
        Ok(())
    }

    fn quoted(&mut self, quote: char, after: &str) -> Result<(), String> {
        let (text, length) = unquoted(quote, after).ok_or("unterminated quoted string")?;
        self.steps.push(Step::Literal(Value::String(text)));
        self.skip_to(after, length);
        Ok(())
    }

    fn number(&mut self) -> Result<(), String> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let digits = self.rest[sign..].find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (text, after) = self.rest.split_at(digits.map_or(self.rest.len(), |digits| sign + digits));
        let number = match text.parse::<i64>() {
            Ok(whole) => Value::from(whole),
            Err(_) => Value::from(text.parse::<f64>().map_err(|_| format!("cannot parse number {text}"))?),
        };
        self.steps.push(Step::Literal(number));
        self.skip_to(after, 0);
        Ok(())
    }

    fn word(&mut self) -> Result<(), String> {
        let rest = self.rest;
        let (word, length) = name(rest);
        let literal = match word.as_str() {
            "true" => true,
            "false" => false,
            _ => return Err(format!("unrecognized identifier {word}")),
        };
        self.steps.push(Step::Literal(Value::Bool(literal)));
        self.skip_to(rest, length);
        Ok(())
    }
}

/// A field name up to the next unescaped terminator, and its length in the text.
fn name(text: &str) -> (String, usize) {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.extend(letters.next().map(|(_, escaped)| escaped)),
            ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}' => return (name, at),
            other => name.push(other),
        }
    }
    (name, text.len())
}

/// Where the bracket closes; a bracket inside quotes does not count.
fn bracket_end(text: &str) -> Option<usize> {
    let mut quoted = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '\'' => quoted = !quoted,
            '\n' => return None,
            ']' if !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// Where the filter's parenthesis closes; one inside quotes does not count.
fn filter_end(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match (letter, quote) {
            ('\n', _) => return None,
            _ if escaped => escaped = false,
            ('\\', _) => escaped = true,
            ('"' | '\'', None) => quote = Some(letter),
            (_, Some(open)) if open == letter => quote = None,
            (')', None) => return Some(at),
            _ => {}
        }
    }
    None
}

fn is_quoted(text: &str) -> bool {
    text.len() >= 2 && text.starts_with('\'') && text.ends_with('\'') && text.matches('\'').count() == 2
}

fn index(text: &str) -> Result<Step, String> {
    if is_quoted(text) {
        return Ok(Step::Field(text[1..text.len() - 1].replace('\\', "")));
    }
    if text == "*" {
        return Ok(Step::Slice(Slice { from: 0, to: SliceEnd::Last, step: 1 }));
    }
    let wrong = || format!("invalid array index {text}");
    let bound = |part: &str| match part {
        "" => Ok(None),
        digits => digits.parse::<i64>().map(Some).map_err(|_| wrong()),
    };
    let slice = match text.split(':').collect::<Vec<_>>()[..] {
        [single] => {
            let from = bound(single)?.ok_or_else(wrong)?;
            Slice { from, to: SliceEnd::Single, step: 1 }
        }
        [from, to] => Slice { from: bound(from)?.unwrap_or(0), to: end(bound(to)?), step: 1 },
        [from, to, step] => {
            let step = bound(step)?.unwrap_or(1);
            let step = usize::try_from(step).ok().filter(|step| *step > 0).ok_or("step must be > 0")?;
            Slice { from: bound(from)?.unwrap_or(0), to: end(bound(to)?), step }
        }
        _ => return Err(wrong()),
    };
    Ok(Step::Slice(slice))
}

fn end(bound: Option<i64>) -> SliceEnd {
    bound.map_or(SliceEnd::Last, SliceEnd::At)
}

fn compared(text: &str) -> Result<(&str, Comparison, &str), String> {
    let is_sign = |letter| matches!(letter, '!' | '<' | '>' | '=');
    let Some(start) = text.find(is_sign) else { return Ok((text, Comparison::Exists, "")) };
    let (left, rest) = text.split_at(start);
    let length = rest.find(|letter| !is_sign(letter)).unwrap_or(rest.len());
    let (sign, right) = rest.split_at(length);
    let comparison = match sign {
        "==" => Comparison::Equal,
        "!=" => Comparison::NotEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        other => return Err(format!("unrecognized filter operator {other}")),
    };
    Ok((left, comparison, right))
}

fn unquoted(quote: char, after: &str) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut letters = after.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            _ if letter == quote => return Some((text, at + letter.len_utf8())),
            '\n' => return None,
            '\\' => text.push(match letters.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            }),
            other => text.push(other),
        }
    }
    None
}
