//! Kubernetes' order of API versions: v10, v2, v1, v11beta2, v10beta3, v3beta1, v12alpha1, foo1.

use std::cmp::{Ordering, Reverse};

/// Orders version names, the most stable and newest first.
pub fn compare(a: &str, b: &str) -> Ordering {
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => Reverse(a).cmp(&Reverse(b)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// Stability, major and minor number of a version that is named as Kubernetes names them.
fn rank(name: &str) -> Option<(u8, u64, u64)> {
    let rest = name.strip_prefix('v')?;
    let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    let major = number(&rest[..digits])?;
    match &rest[digits..] {
        "" => Some((2, major, 0)),
        tail if tail.starts_with("beta") => Some((1, major, number(&tail[4..])?)),
        tail if tail.starts_with("alpha") => Some((0, major, number(&tail[5..])?)),
        _ => None,
    }
}

fn number(digits: &str) -> Option<u64> {
    // A sign would be read too, and Kubernetes knows none; zeros in front it does read.
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_order() {
        let expected = [
            "v10",
            "v2",
            "v01",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
            "v+1",
            "v1beta",
        ];
        let mut shuffled = expected;
        shuffled.reverse();
        shuffled.sort_by(|a, b| compare(a, b));
        assert_eq!(shuffled, expected);
    }
}
