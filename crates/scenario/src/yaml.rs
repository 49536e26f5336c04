//! Errors of the YAML parser in plain words, on one line, without the parser's advice for programmers.

use serde_saphyr::{Error, UserMessageFormatter};

/// What is wrong with a YAML text, and where.
pub fn yaml_problem(error: &Error) -> String {
    let text = error.without_snippet().render_with_formatter(&UserMessageFormatter);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_problem_is_one_line_with_its_place() {
        let check = |text: &str| {
            let error = serde_saphyr::from_multiple::<Value>(text).expect_err("it is not YAML");
            yaml_problem(&error)
        };
        for text in ["a: [1, 2", "a: 1\n b: 2", "a: *missing", "a: 1\na: 2"] {
            let problem = check(text);
            assert!(problem.contains("line ") && !problem.contains('\n'), "{problem}");
            assert!(!problem.contains("from_"), "no advice for programmers: {problem}");
        }
    }
}
