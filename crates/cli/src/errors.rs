//! How errors are told: what was tried, why it failed, and what the user can do.

use crate::terminal_text::labelled;

/// An error is one line: what was tried and why it failed; a hint, where there is one, is a second.
#[expect(clippy::print_stderr, reason = "stderr is where errors are reported")]
pub fn print_error(error: &anyhow::Error) {
    let hint = error.chain().find_map(|cause| cause.downcast_ref::<Hint>());
    eprintln!("{}", labelled("error: ", &causes(error)));
    if let Some(Hint(hint)) = hint {
        eprintln!("{}", labelled("hint: ", hint));
    }
}

/// What was tried and why it failed, without the hint. Client errors are shortened to the message, without what
/// libraries add around it.
pub fn causes(error: &anyhow::Error) -> String {
    let mut causes = Vec::new();
    for cause in error.chain().filter(|cause| !cause.is::<Hint>()) {
        if let Some(error) = cause.downcast_ref::<kube::Error>() {
            causes.push(::controllers::rest::described(error));
            break;
        }
        causes.push(cause.to_string());
        if cause.is::<::controllers::rest::Error>() {
            break;
        }
    }
    causes.join(": ")
}

/// What the user can do about an error; the last link of its chain.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Hint(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_clients_are_told_in_plain_words() {
        let refused = || kube::Error::Service(Box::new(std::io::Error::from_raw_os_error(111)));
        let error = anyhow::Error::new(refused()).context("list the objects");
        assert_eq!(causes(&error), "list the objects: connection refused");
        let error = ::controllers::rest::Error::Unreachable {
            action: "get /x".to_owned(),
            source: Box::new(refused()),
        };
        let error = anyhow::Error::new(error).context("read it");
        assert_eq!(causes(&error), "read it: get /x: connection refused");
        let error = anyhow::Error::new(Hint("do this".to_owned())).context("it failed");
        assert_eq!(causes(&error), "it failed");
    }
}
