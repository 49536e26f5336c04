//! Token rotation: when a token of ours in a member is replaced. It is replaced at half of its lifetime, which leaves
//! time for retries and for a control plane that was switched off.

use std::time::Duration;

use jiff::Timestamp;

/// A token that ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenLife {
    /// When the member made it.
    pub issued: Timestamp,
    /// When it ends.
    pub expires: Timestamp,
    /// Whether the controllers have reached the member with it. A token that `join` brought is replaced at once, which
    /// shows that it works and that it can be replaced.
    pub is_used: bool,
}

/// When a token is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRenewal {
    /// Now.
    Due,
    /// After this time.
    After(Duration),
}

/// When a token is to be replaced.
pub fn token_renewal(token: &TokenLife, now: Timestamp) -> TokenRenewal {
    if !token.is_used {
        return TokenRenewal::Due;
    }
    let half = token.expires.duration_since(token.issued) / 2;
    let due = token.issued.saturating_add(half).unwrap_or(token.expires);
    match Duration::try_from(due.duration_since(now)) {
        Ok(left) if !left.is_zero() => TokenRenewal::After(left),
        _ => TokenRenewal::Due,
    }
}

/// How many seconds the next token is asked for: as many as the last one had, within what Kubernetes takes.
pub fn token_seconds(token: &TokenLife) -> i64 {
    token.expires.duration_since(token.issued).as_secs().max(600)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_its_life_is_kept_in_reserve() {
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).expect("a time");
        let check = |is_used: bool, now: i64, expected: TokenRenewal| {
            let token = TokenLife { issued: at(0), expires: at(1_000), is_used };
            assert_eq!(token_renewal(&token, at(now)), expected, "{is_used} {now}");
        };
        check(false, 0, TokenRenewal::Due);
        check(true, 0, TokenRenewal::After(Duration::from_secs(500)));
        check(true, 499, TokenRenewal::After(Duration::from_secs(1)));
        check(true, 500, TokenRenewal::Due);
        check(true, 5_000, TokenRenewal::Due);
        // A clock that is behind does not wait longer than it must.
        check(true, -100, TokenRenewal::After(Duration::from_secs(600)));
        let backwards = TokenLife { issued: at(1_000), expires: at(0), is_used: true };
        assert_eq!(
            (token_renewal(&backwards, at(1_000)), token_seconds(&backwards)),
            (TokenRenewal::Due, 600)
        );
    }
}
