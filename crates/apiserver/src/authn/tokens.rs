//! Static bearer tokens from a file in the format of kube-apiserver's `--token-auth-file`: token, user, uid and, in
//! quotes, groups. Only digests of the tokens are kept.

use std::collections::HashMap;

use ring::digest::{SHA256, digest};

use super::Identity;

/// The tokens of a file, by their digests.
#[derive(Debug, Clone, Default)]
pub struct StaticTokens {
    by_digest: HashMap<Vec<u8>, Identity>,
}

/// What is wrong with a file of tokens. Never says what stands in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct TokenFileError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: &'static str,
}

impl StaticTokens {
    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Self, TokenFileError> {
        let mut by_digest = HashMap::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = |why| TokenFileError { line: index + 1, why };
            let fields = fields(line).ok_or_else(|| wrong("a quote is not closed"))?;
            let [token, user, uid, groups @ ..] = fields.as_slice() else {
                return Err(wrong("a token, a user and a uid are needed, separated by commas"));
            };
            if token.is_empty() || user.is_empty() {
                return Err(wrong("token and user must not be empty"));
            }
            let groups = groups.first().map(String::as_str).unwrap_or_default();
            let groups = groups.split(',').map(str::trim).filter(|group| !group.is_empty());
            let identity = Identity { uid: uid.clone(), ..Identity::named(user, groups) };
            if by_digest.insert(digest_of(token), identity).is_some() {
                return Err(wrong("the token stands in an earlier line too"));
            }
        }
        Ok(Self { by_digest })
    }

    /// The user of a token. Looked up by digest, so that timing does not reveal how much of a guess was right.
    pub(crate) fn find(&self, token: &str) -> Option<Identity> {
        if self.by_digest.is_empty() {
            return None;
        }
        self.by_digest.get(&digest_of(token)).cloned()
    }
}

fn digest_of(token: &str) -> Vec<u8> {
    digest(&SHA256, token.as_bytes()).as_ref().to_vec()
}

/// The fields of a line; a field in quotes may hold commas, and a doubled quote is one.
fn fields(line: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut rest = line.trim().chars().peekable();
    while let Some(letter) = rest.next() {
        let last = fields.last_mut().expect("there is always one");
        match letter {
            '"' if quoted && rest.peek() == Some(&'"') => last.extend(rest.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            letter => last.push(letter),
        }
    }
    (!quoted).then(|| fields.into_iter().map(|field| field.trim().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_token_user_uid_and_groups() {
        let tokens = StaticTokens::parse("t1,alice,u1,\"devs,ops\"\n\nt2, bob ,u2\n").expect("a file");
        let alice = tokens.find("t1").expect("her token");
        assert_eq!((alice.user.as_str(), alice.uid.as_str()), ("alice", "u1"));
        assert_eq!(alice.groups, ["devs", "ops", "system:authenticated"]);
        assert_eq!(tokens.find("t2").expect("his token").groups, ["system:authenticated"]);
        assert_eq!(tokens.find("t3"), None);
        assert!(!format!("{tokens:?}").contains("t1"), "tokens are not kept");
    }

    #[test]
    fn a_broken_file_is_refused_without_quoting_it() {
        let check = |text: &str, line: usize, why: &str| {
            let error = StaticTokens::parse(text).expect_err("a refusal");
            assert_eq!((error.line, error.why), (line, why));
        };
        check("secret,alice", 1, "a token, a user and a uid are needed, separated by commas");
        check("t,a,u\n,b,u", 2, "token and user must not be empty");
        check("t,a,u\nt,b,u", 2, "the token stands in an earlier line too");
        check("t,a,u,\"x", 1, "a quote is not closed");
    }
}
