//! The parser: tokens to a syntax tree, operators by precedence, macros expanded. Both the nesting of the text and
//! the depth of the tree are bounded. Must not know which names exist.

use crate::ast::{Access, DEPTH_MAX, Expr, Literal, Node};
use crate::issue::Issue;
use crate::signatures;
use crate::token::{Placed, Token, tokens};

mod macros;

/// The longest expression that is read.
const SOURCE_CHARS_MAX: usize = 100_000;

/// Words that no name may be, because they may come to mean something.
pub const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The tree of an expression, or everything that was found wrong while reading it.
pub(crate) fn parse(source: &str) -> Result<Expr, Vec<Issue>> {
    let length = source.chars().count();
    if length > SOURCE_CHARS_MAX {
        let message =
            format!("expression code point size exceeds limit: size: {length}, limit {SOURCE_CHARS_MAX}");
        return Err(vec![Issue::of_the_whole(message)]);
    }
    let (tokens, mut issues) = tokens(source);
    let mut parser = Parser { tokens, next: 0, level: 0 };
    match parser.whole() {
        Ok(root) if issues.is_empty() => return Ok(root),
        Ok(_) => {}
        Err(issue) => issues.push(issue),
    }
    issues.sort_by_key(|issue| issue.at);
    Err(issues)
}

struct Parser {
    tokens: Vec<Placed>,
    next: usize,
    level: usize,
}

/// The operators between two operands, from weak to strong.
const LEVELS: [&[&str]; 3] = [&["<", "<=", ">=", ">", "==", "!=", "in"], &["+", "-"], &["*", "/", "%"]];

fn operator_name(symbol: &str) -> String {
    match symbol {
        "in" => "@in".to_owned(),
        symbol => format!("_{symbol}_"),
    }
}

impl Parser {
    fn whole(&mut self) -> Result<Expr, Issue> {
        let root = self.expression()?;
        match self.peek() {
            Token::End => Ok(root),
            _ => Err(self.unexpected("<EOF>")),
        }
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.next].token
    }

    fn at(&self) -> usize {
        self.tokens[self.next].at
    }

    /// The next token is passed, but never the end.
    fn advance(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    fn is(&self, symbol: &str) -> bool {
        match self.peek() {
            Token::Symbol(found) => *found == symbol,
            Token::Ident(word) => symbol == "in" && word == "in",
            _ => false,
        }
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), Issue> {
        match self.take(symbol) {
            true => Ok(()),
            false if *self.peek() == Token::End => {
                Err(Issue::syntax(self.at(), format!("missing '{symbol}' at '<EOF>'")))
            }
            false => Err(self.unexpected(&format!("'{symbol}'"))),
        }
    }

    fn unexpected(&self, wanted: &str) -> Issue {
        let found = match self.peek() {
            Token::Ident(word) => word.clone(),
            Token::Symbol(symbol) => (*symbol).to_owned(),
            Token::Int(number) | Token::Uint(number) => number.to_string(),
            Token::Double(number) => number.to_string(),
            Token::String(text) => format!("{text:?}"),
            Token::Bytes(_) => "b\"...\"".to_owned(),
            Token::End => "<EOF>".to_owned(),
        };
        // cel-go reports a single extra token at the end differently from other unexpected tokens.
        let is_one = wanted == "<EOF>" && self.next + 2 == self.tokens.len();
        let what = if is_one { "extraneous" } else { "mismatched" };
        Issue::syntax(self.at(), format!("{what} input '{found}' expecting {wanted}"))
    }

    /// A node over others. This is where trees that are too deep end.
    fn node(&self, at: usize, node: Node) -> Result<Expr, Issue> {
        let mut expr = Expr { at, depth: 1, node };
        expr.depth += expr.children().iter().map(|child| child.depth).max().unwrap_or(0);
        match expr.depth > DEPTH_MAX {
            true => Err(too_deep()),
            false => Ok(expr),
        }
    }

    fn call(&self, at: usize, function: String, args: Vec<Expr>) -> Result<Expr, Issue> {
        self.node(at, Node::Call { function, target: None, args })
    }

    fn expression(&mut self) -> Result<Expr, Issue> {
        self.level += 1;
        if self.level > DEPTH_MAX {
            return Err(too_deep());
        }
        let condition = self.logical("||")?;
        let at = self.at();
        let parsed = match self.take("?") {
            false => Ok(condition),
            true => {
                let yes = self.logical("||")?;
                self.expect(":")?;
                let no = self.expression()?;
                self.node(at, Node::If(Box::new([condition, yes, no])))
            }
        };
        self.level -= 1;
        parsed
    }

    fn logical(&mut self, symbol: &'static str) -> Result<Expr, Issue> {
        let mut terms = Vec::new();
        let mut at = self.at();
        loop {
            terms.push(match symbol {
                "||" => self.logical("&&")?,
                _ => self.binary(0)?,
            });
            let here = self.at();
            if !self.take(symbol) {
                break;
            }
            if terms.len() == 1 {
                at = here;
            }
        }
        match (terms.len(), symbol) {
            (1, _) => Ok(terms.remove(0)),
            (_, "||") => self.node(at, Node::Or(terms)),
            _ => self.node(at, Node::And(terms)),
        }
    }

    fn binary(&mut self, level: usize) -> Result<Expr, Issue> {
        let Some(symbols) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(symbol) = symbols.iter().find(|symbol| self.is(symbol)) {
            let at = self.at();
            self.advance();
            let right = self.binary(level + 1)?;
            left = self.call(at, operator_name(symbol), vec![left, right])?;
        }
        Ok(left)
    }

    /// An even number of signs says nothing.
    fn unary(&mut self) -> Result<Expr, Issue> {
        let at = self.at();
        for (symbol, function) in [("!", "!_"), ("-", "-_")] {
            let mut count = 0;
            while self.take(symbol) {
                count += 1;
            }
            if count == 0 {
                continue;
            }
            let negative = symbol == "-" && count % 2 == 1;
            let number = match *self.peek() {
                Token::Int(number) if negative => 0_i64.checked_sub_unsigned(number).map(Literal::Int),
                Token::Double(number) if negative => Some(Literal::Double(-number)),
                _ => None,
            };
            let operand = match number {
                Some(literal) => {
                    self.advance();
                    let literal = self.node(at, Node::Literal(literal))?;
                    return self.members(literal);
                }
                None => {
                    let primary = self.primary()?;
                    self.members(primary)?
                }
            };
            return match count % 2 {
                0 => Ok(operand),
                _ => self.call(at, function.to_owned(), vec![operand]),
            };
        }
        let primary = self.primary()?;
        self.members(primary)
    }

    /// Fields, elements and calls behind an operand.
    fn members(&mut self, mut operand: Expr) -> Result<Expr, Issue> {
        loop {
            let at = self.at();
            if self.take("[") {
                let function = if self.take("?") { "_[?_]" } else { "_[_]" };
                let index = self.expression()?;
                self.expect("]")?;
                operand = self.call(at, function.to_owned(), vec![operand, index])?;
            } else if self.take(".") {
                operand = self.member(operand, at)?;
            } else {
                return Ok(operand);
            }
        }
    }

    fn member(&mut self, operand: Expr, at: usize) -> Result<Expr, Issue> {
        let access = if self.take("?") { Access::Optional } else { Access::Value };
        let Token::Ident(name) = self.peek().clone() else {
            return Err(Issue::syntax(self.at(), "no viable alternative at input '.'".to_owned()));
        };
        self.advance();
        let open = self.at();
        if access == Access::Value && self.take("(") {
            let args = self.arguments(")")?;
            if let Some(expanded) = self.member_macro(&name, &operand, &args, open)? {
                return Ok(expanded);
            }
            if let Some(function) = dotted(&operand).map(|space| format!("{space}.{name}"))
                && signatures::is_function(&function)
            {
                return self.call(open, function, args);
            }
            let target = Some(Box::new(operand));
            return self.node(open, Node::Call { function: name, target, args });
        }
        let whole = dotted(&operand).map(|space| format!("{space}.{name}"));
        if let Some(known) = whole.and_then(|whole| signatures::type_name(&whole)) {
            return self.node(at, Node::Literal(Literal::Type(known)));
        }
        self.node(at, Node::Select { operand: Box::new(operand), field: name, access })
    }

    fn arguments(&mut self, end: &str) -> Result<Vec<Expr>, Issue> {
        let mut args = Vec::new();
        while !self.is(end) {
            args.push(self.expression()?);
            if !self.take(",") {
                break;
            }
        }
        self.expect(end)?;
        Ok(args)
    }

    fn primary(&mut self) -> Result<Expr, Issue> {
        let at = self.at();
        let literal = match self.peek().clone() {
            Token::Int(number) => {
                let number = i64::try_from(number);
                Literal::Int(number.map_err(|_| Issue::new(at, "invalid int literal".to_owned()))?)
            }
            Token::Uint(number) => Literal::Uint(number),
            Token::Double(number) => Literal::Double(number),
            Token::String(text) => Literal::String(text),
            Token::Bytes(bytes) => Literal::Bytes(bytes),
            Token::Ident(word) => return self.word(word, at),
            Token::Symbol(symbol) => return self.bracket(symbol, at),
            Token::End => return Err(self.unexpected(STARTS)),
        };
        self.advance();
        self.node(at, Node::Literal(literal))
    }

    fn word(&mut self, word: String, at: usize) -> Result<Expr, Issue> {
        let literal = match word.as_str() {
            "true" => Some(Literal::Bool(true)),
            "false" => Some(Literal::Bool(false)),
            "null" => Some(Literal::Null),
            "in" => return Err(self.unexpected(STARTS)),
            _ => None,
        };
        self.advance();
        if let Some(literal) = literal {
            return self.node(at, Node::Literal(literal));
        }
        if RESERVED.contains(&word.as_str()) {
            return Err(Issue::new(at, format!("reserved identifier: {word}")));
        }
        let open = self.at();
        if !self.take("(") {
            return self.node(at, Node::Ident(word));
        }
        let args = self.arguments(")")?;
        match word.as_str() {
            "has" => self.presence(args, open),
            _ => self.call(open, word, args),
        }
    }

    fn bracket(&mut self, symbol: &str, at: usize) -> Result<Expr, Issue> {
        self.advance();
        match symbol {
            "(" => {
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            "[" => self.list(at),
            "{" => self.map(at),
            // A name that begins at the root, which is where all names are.
            "." if matches!(self.peek(), Token::Ident(_)) => self.primary(),
            _ => {
                self.next -= 1;
                Err(self.unexpected(STARTS))
            }
        }
    }

    fn list(&mut self, at: usize) -> Result<Expr, Issue> {
        let mut items = Vec::new();
        while !self.is("]") {
            let optional = self.take("?");
            items.push((self.expression()?, optional));
            if !self.take(",") {
                break;
            }
        }
        self.expect("]")?;
        self.node(at, Node::List(items))
    }

    fn map(&mut self, at: usize) -> Result<Expr, Issue> {
        let mut entries = Vec::new();
        while !self.is("}") {
            let optional = self.take("?");
            let key = self.expression()?;
            self.expect(":")?;
            entries.push((key, self.expression()?, optional));
            if !self.take(",") {
                break;
            }
        }
        self.expect("}")?;
        self.node(at, Node::Map(entries))
    }
}

/// What an expression can begin with, as the grammar lists it.
const STARTS: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, \
                      BYTES, IDENTIFIER}";

fn too_deep() -> Issue {
    Issue::of_the_whole(format!("expression recursion limit exceeded: {DEPTH_MAX}"))
}

/// A chain of names as it is written.
fn dotted(expr: &Expr) -> Option<String> {
    match &expr.node {
        Node::Ident(name) => Some(name.clone()),
        Node::Select { operand, field, access: Access::Value } => {
            Some(format!("{}.{field}", dotted(operand)?))
        }
        // What is itself the name of a type and the beginning of a function's, such as `string`.
        _ => None,
    }
}
