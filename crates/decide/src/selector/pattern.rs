//! Namespace patterns (B1): a comma-separated list of exact names and `prefix*`. Knows nothing else of
//! selectors.

use std::fmt;

/// Longest name a namespace can have.
const NAME_LENGTH_MAX: usize = 63;
/// More items than any written list has; a bound because the text comes from outside.
const ITEMS_MAX: usize = 1000;
/// Shown with every refusal.
const GRAMMAR: &str = "write exact names or prefixes such as `prod`, `user1-*` or `prod,user1-*`: items \
                       separated by commas without spaces, the star last and after at least one character";

/// Which namespaces are meant; the empty text means all of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    /// Every namespace, and objects without one.
    Any,
    /// Those that one of the items means.
    OneOf(Vec<Item>),
}

/// One item of the list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// This namespace.
    Exact(String),
    /// Namespaces that begin like this.
    Prefix(String),
}

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    item: String,
    reason: &'static str,
}

impl fmt::Display for PatternError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} {}; {GRAMMAR}", self.item, self.reason)
    }
}

impl std::error::Error for PatternError {}

impl Pattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        if text.is_empty() {
            return Ok(Pattern::Any);
        }
        if text.split(',').nth(ITEMS_MAX).is_some() {
            return Err(PatternError { item: String::new(), reason: "is a list of too many items" });
        }
        text.split(',').map(Item::parse).collect::<Result<_, _>>().map(Pattern::OneOf)
    }

    /// True when the namespace is meant.
    pub fn matches(&self, namespace: &str) -> bool {
        match self {
            Pattern::Any => true,
            Pattern::OneOf(items) => items.iter().any(|item| item.matches(namespace)),
        }
    }
}

impl Item {
    fn parse(text: &str) -> Result<Item, PatternError> {
        let refuse = |reason| Err(PatternError { item: text.to_owned(), reason });
        let (name, prefix) = match text.strip_suffix('*') {
            Some(prefix) => (prefix, true),
            None => (text, false),
        };
        match name {
            "" if prefix => return refuse("means every namespace; leave `namespace` out to say that"),
            "" => return refuse("is an empty item"),
            _ if name.contains('*') => return refuse("has a star that is not last"),
            _ if name.len() > NAME_LENGTH_MAX => return refuse("is longer than a namespace can be"),
            _ => {}
        }
        let inside = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
        if !name.as_bytes().iter().all(inside) {
            return refuse("has characters no namespace can have (lower-case letters, digits and `-`)");
        }
        if name.starts_with('-') || (!prefix && name.ends_with('-')) {
            return refuse("begins or ends with `-`, which no namespace does");
        }
        let name = name.to_owned();
        Ok(if prefix { Item::Prefix(name) } else { Item::Exact(name) })
    }

    pub(crate) fn matches(&self, namespace: &str) -> bool {
        match self {
            Item::Exact(name) => namespace == name,
            Item::Prefix(prefix) => namespace.starts_with(prefix.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, namespace: &str, expected: bool) {
        assert_eq!(Pattern::parse(text).expect(text).matches(namespace), expected, "{text} {namespace}");
    }

    #[test]
    fn b1_lists_and_prefixes_match() {
        check("", "anything", true);
        check("", "", true);
        check("user1-a", "user1-a", true);
        check("user1-a", "user1-ab", false);
        check("user1-*", "user1-a", true);
        check("user1-*", "user1-", true);
        check("user1-*", "user10-a", false);
        check("a,b", "b", true);
        check("a,b", "c", false);
        check("a,b", "", false);
        check("a,user1-*", "user1-x", true);
    }

    #[test]
    fn b1_everything_else_is_refused_with_the_grammar() {
        for (text, reason) in [
            ("*", "every namespace"),
            ("a*b", "not last"),
            ("*a", "not last"),
            ("a**", "not last"),
            ("a,,b", "empty item"),
            (",", "empty item"),
            ("a,", "empty item"),
            ("a, b", "characters"),
            (" a", "characters"),
            ("A", "characters"),
            ("a.b", "characters"),
            ("a_b*", "characters"),
            ("-a", "begins or ends"),
            ("a-", "begins or ends"),
            ("a,*", "every namespace"),
        ] {
            let message = Pattern::parse(text).expect_err(text).to_string();
            assert!(message.contains(reason) && message.contains("user1-*"), "{text}: {message}");
        }
        let long = "a".repeat(64);
        assert!(Pattern::parse(&long).is_err());
        assert!(Pattern::parse(&vec!["a"; 1001].join(",")).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn no_text_makes_it_fail_and_what_it_takes_obeys_the_grammar(text in "[a-z0-9A-Z*, .-]{0,12}|\\PC{0,8}") {
            if let Ok(Pattern::OneOf(items)) = Pattern::parse(&text) {
                let written: Vec<String> = items.iter().map(|item| match item {
                    Item::Exact(name) => name.clone(),
                    Item::Prefix(prefix) => format!("{prefix}*"),
                }).collect();
                prop_assert_eq!(written.join(","), text);
            }
        }

        #[test]
        fn a_list_matches_what_one_of_its_items_matches(items in prop::collection::vec("[a-z]{1,3}\\*?", 1..4), namespace in "[a-z]{1,4}") {
            let list = Pattern::parse(&items.join(",")).expect("items are valid");
            let any = items.iter().any(|item| match item.strip_suffix('*') {
                Some(prefix) => namespace.starts_with(prefix),
                None => namespace == *item,
            });
            prop_assert_eq!(list.matches(&namespace), any);
        }
    }
}
