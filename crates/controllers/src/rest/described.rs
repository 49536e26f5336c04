//! The error message of a failed request: what the server answered, or the root cause of the error chain, without the
//! names of libraries and types around it.

/// A failure of the client in plain words.
pub fn described(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        return match status.message.as_str() {
            "" => format!("the server answered {}", status.code),
            message => message.to_owned(),
        };
    }
    let mut deepest: &dyn std::error::Error = error;
    while let Some(cause) = deepest.source() {
        deepest = cause;
    }
    let text = deepest.to_string();
    // The number means something to programmers only.
    let text = text.split(" (os error ").next().unwrap_or_default();
    match text {
        "Connection refused" => "connection refused".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_cause_is_told() {
        let refused = std::io::Error::from_raw_os_error(111);
        let wrapped = kube::Error::Service(Box::new(refused));
        assert_eq!(described(&wrapped), "connection refused");
        let status =
            kube::core::Status { message: "no such thing".to_owned(), code: 404, ..Default::default() };
        assert_eq!(described(&kube::Error::Api(Box::new(status))), "no such thing");
        let silent = kube::core::Status { code: 503, ..Default::default() };
        assert_eq!(described(&kube::Error::Api(Box::new(silent))), "the server answered 503");
    }
}
