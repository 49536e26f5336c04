//! Parser of `?labelSelector=`, with Kubernetes' error messages. Must not know about HTTP.

use super::{Operator, Requirement, joined};
use crate::error::FieldError;
use crate::names;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    In,
    NotIn,
    Symbol(&'static str),
    End,
}

const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", ">", "<", ",", "(", ")"];
const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

/// The requirements of a selector, in the order they were written.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
    let mut tokens = Tokens { all: tokens(text), next: 0 };
    let mut requirements = Vec::new();
    loop {
        match tokens.peek() {
            Token::End => return Ok(requirements),
            Token::Word(_) | Token::In | Token::NotIn | Token::Symbol("!") => {}
            other => {
                return Err(format!("found '{}', expected: !, identifier, or 'end of string'", other.text()));
            }
        }
        let requirement =
            tokens.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
        requirements.push(requirement);
        match tokens.take() {
            Token::End => return Ok(requirements),
            Token::Symbol(",") => tokens.expect_requirement_after_comma()?,
            other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
        }
    }
}

/// What is wrong with a key, operator and values that would make a requirement.
pub(super) fn wrong_requirement(key: &str, operator: Operator, values: &[String]) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    let rules = names::label_key(key);
    if !rules.is_empty() {
        wrong.push(FieldError::invalid("key", key, rules.join("; ")));
    }
    match operator {
        Operator::In | Operator::NotIn if values.is_empty() => {
            let rule = "for 'in', 'notin' operators, values set can't be empty";
            wrong.push(FieldError::invalid("values", values.to_vec(), rule));
        }
        Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
            let rule = "values set must be empty for exists and does not exist";
            wrong.push(FieldError::invalid("values", values.to_vec(), rule));
        }
        Operator::GreaterThan | Operator::LessThan => {
            wrong.extend(values.iter().enumerate().filter_map(not_integer))
        }
        _ => {}
    }
    for (index, value) in values.iter().enumerate() {
        let rules = names::label_value(value);
        if !rules.is_empty() {
            wrong.push(FieldError::invalid(
                format!("values[{index}][{key}]"),
                value.as_str(),
                rules.join("; "),
            ));
        }
    }
    wrong
}

fn not_integer((index, value): (usize, &String)) -> Option<FieldError> {
    let rule = "for 'Gt', 'Lt' operators, the value must be an integer";
    let is_integer = value.parse::<i64>().is_ok();
    (!is_integer).then(|| FieldError::invalid(format!("values[{index}]"), value.as_str(), rule))
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_blank);
    while !rest.is_empty() {
        let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
        let (token, length) = match symbol {
            Some(symbol) => (Token::Symbol(symbol), symbol.len()),
            None => word(rest),
        };
        tokens.push(token);
        rest = rest[length..].trim_start_matches(is_blank);
    }
    tokens.push(Token::End);
    tokens
}

fn word(rest: &str) -> (Token, usize) {
    let end = rest.find(|letter| is_blank(letter) || "=!(),><".contains(letter)).unwrap_or(rest.len());
    let token = match &rest[..end] {
        "in" => Token::In,
        "notin" => Token::NotIn,
        word => Token::Word(word.to_owned()),
    };
    (token, end)
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n')
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::In => "in",
            Self::NotIn => "notin",
            Self::Symbol(symbol) => symbol,
            Self::End => "",
        }
    }

    /// `in` and `notin` are ordinary words wherever no operator can stand.
    fn into_word(self) -> Result<String, Self> {
        match self {
            Self::Word(word) => Ok(word),
            Self::In | Self::NotIn => Ok(self.text().to_owned()),
            other => Err(other),
        }
    }
}

struct Tokens {
    all: Vec<Token>,
    next: usize,
}

impl Tokens {
    fn peek(&self) -> &Token {
        self.all.get(self.next).unwrap_or(&Token::End)
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    fn expect_requirement_after_comma(&self) -> Result<(), String> {
        match self.peek() {
            Token::Word(_) | Token::In | Token::NotIn | Token::Symbol("!") => Ok(()),
            other => Err(format!("found '{}', expected: identifier after ','", other.text())),
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = *self.peek() == Token::Symbol("!");
        if negated {
            self.take();
        }
        let key = self
            .take()
            .into_word()
            .map_err(|found| format!("found '{}', expected: identifier", found.text()))?;
        let rules = names::label_key(&key);
        if !rules.is_empty() {
            return Err(joined(&[FieldError::invalid("<nil>", key, rules.join("; "))]));
        }
        if negated {
            return Requirement::new(&key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Requirement::new(&key, Operator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let mut values = match operator {
            Operator::In | Operator::NotIn => self.value_set()?,
            _ => vec![self.value()?],
        };
        values.sort();
        values.dedup();
        Requirement::new(&key, operator, values)
    }

    fn operator(&mut self) -> Result<Operator, String> {
        match self.take() {
            Token::In => Ok(Operator::In),
            Token::NotIn => Ok(Operator::NotIn),
            Token::Symbol("=") => Ok(Operator::Equals),
            Token::Symbol("==") => Ok(Operator::DoubleEquals),
            Token::Symbol("!=") => Ok(Operator::NotEquals),
            Token::Symbol(">") => Ok(Operator::GreaterThan),
            Token::Symbol("<") => Ok(Operator::LessThan),
            other => Err(format!("found '{}', expected: {OPERATORS}", other.text())),
        }
    }

    fn value(&mut self) -> Result<String, String> {
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(String::new());
        }
        self.take().into_word().map_err(|found| format!("found '{}', expected: identifier", found.text()))
    }

    /// `(a,,b)`: between two commas, or beside a parenthesis, stands the empty value.
    fn value_set(&mut self) -> Result<Vec<String>, String> {
        match self.take() {
            Token::Symbol("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        match self.peek() {
            Token::Word(_) | Token::In | Token::NotIn | Token::Symbol("," | ")") => {}
            other => return Err(format!("found '{}', expected: ',', ')' or identifier", other.text())),
        }
        let mut values = Vec::new();
        loop {
            values.push(match self.peek() {
                Token::Symbol("," | ")") => String::new(),
                Token::Word(_) | Token::In | Token::NotIn => self.take().text().to_owned(),
                other => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
            });
            match self.take() {
                Token::Symbol(",") => {}
                Token::Symbol(")") => return Ok(values),
                other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
            }
        }
    }
}
