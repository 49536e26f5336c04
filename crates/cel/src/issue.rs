//! Errors of an expression, formatted with the source line and a caret under the position.

/// One thing that is wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Where, in characters from the beginning; nowhere in particular for what is wrong with the whole.
    pub(crate) at: Option<usize>,
    message: String,
}

impl Issue {
    pub(crate) fn new(at: usize, message: String) -> Self {
        Self { at: Some(at), message }
    }

    pub(crate) fn of_the_whole(message: String) -> Self {
        Self { at: None, message }
    }

    pub(crate) fn syntax(at: usize, message: String) -> Self {
        Self::new(at, format!("Syntax error: {message}"))
    }

    fn shown(&self, source: &str) -> String {
        let Some(at) = self.at else { return format!("ERROR: <input>:-1:0: {}", self.message) };
        let before: Vec<char> = source.chars().take(at).collect();
        let line = before.iter().filter(|letter| **letter == '\n').count();
        let column = before.iter().rev().take_while(|letter| **letter != '\n').count();
        let text = source.split('\n').nth(line).unwrap_or_default().replace('\t', " ");
        let dots: String =
            text.chars().take(column).map(|letter| if letter.is_ascii() { '.' } else { '．' }).collect();
        let mark = if text.chars().nth(column).is_none_or(|letter| letter.is_ascii()) { '^' } else { '＾' };
        let place = format!("ERROR: <input>:{}:{}: {}", line + 1, column + 1, self.message);
        match text.len() <= SHOWN_BYTES_MAX {
            true => format!("{place}\n | {text}\n | {dots}{mark}"),
            false => place,
        }
    }
}

/// Longer lines are not shown.
const SHOWN_BYTES_MAX: usize = 16_384;

/// Everything that is wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issues {
    shown: Vec<String>,
}

impl Issues {
    pub(crate) fn of(source: &str, issues: &[Issue]) -> Self {
        Self { shown: issues.iter().map(|issue| issue.shown(source)).collect() }
    }
}

impl std::fmt::Display for Issues {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.shown.join("\n"))
    }
}

impl std::error::Error for Issues {}
