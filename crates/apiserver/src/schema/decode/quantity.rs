//! Is a text a Kubernetes quantity, such as `100m`, `1.5Gi` or `2e3`?

/// Whether a text is a quantity: a signed decimal and a suffix of either family, or an exponent.
pub(super) fn is_quantity(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|letter: char| !(letter.is_ascii_digit() || letter == '.'));
    let (number, suffix) = unsigned.split_at(end.unwrap_or(unsigned.len()));
    let digits = number.bytes().any(|byte| byte.is_ascii_digit());
    digits && number.matches('.').count() <= 1 && is_suffix(suffix)
}

fn is_suffix(suffix: &str) -> bool {
    const SUFFIXES: [&str; 16] =
        ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let exponent = suffix.strip_prefix(['e', 'E']).map(|rest| rest.strip_prefix(['+', '-']).unwrap_or(rest));
    SUFFIXES.contains(&suffix)
        || exponent.is_some_and(|digits| {
            !digits.is_empty() && digits.len() < 10 && digits.bytes().all(|byte| byte.is_ascii_digit())
        })
}

#[cfg(test)]
mod tests {
    use super::is_quantity;

    #[test]
    fn tells_quantities() {
        for text in ["1", "100m", "1.5Gi", "2e3", "-1", "+.5", "1.", "1E", "1E3", "0", "12e-6"] {
            assert!(is_quantity(text), "{text}");
        }
        for text in ["", "x", "1x", "1.2.3", ".", "1 Gi", "1GiB", "1e", "--1", "1ki"] {
            assert!(!is_quantity(text), "{text}");
        }
    }
}
