//! Parses image references, `registry:port/repository:tag@digest`, and replaces one component.

use std::fmt;
use std::str::FromStr;

use api::override_policy::{ImageComponent, OverriderOperator};

/// Longest repository with registry that a registry accepts.
const NAME_LENGTH_MAX: usize = 255;
/// Longest tag that a registry accepts.
const TAG_LENGTH_MAX: usize = 128;

/// An image name in parts; a part that is not there is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Image {
    registry: String,
    repository: String,
    tag: String,
    digest: String,
}

/// Why a text is no image name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAnImage(String);

impl fmt::Display for NotAnImage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:?} is not an image name: write [registry[:port]/]repository[:tag][@digest]",
            self.0
        )
    }
}

impl FromStr for Image {
    type Err = NotAnImage;

    fn from_str(text: &str) -> Result<Image, NotAnImage> {
        parse(text).ok_or_else(|| NotAnImage(text.to_owned()))
    }
}

impl fmt::Display for Image {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.registry.is_empty() {
            write!(formatter, "{}/", self.registry)?;
        }
        formatter.write_str(&self.repository)?;
        if !self.tag.is_empty() {
            write!(formatter, ":{}", self.tag)?;
        }
        if !self.digest.is_empty() {
            write!(formatter, "@{}", self.digest)?;
        }
        Ok(())
    }
}

impl Image {
    /// Changes one part: `add` appends, `replace` sets, `remove` drops. A tag and a digest replace each
    /// other, and what is neither leaves both alone, as in Karmada.
    pub fn change(&mut self, component: ImageComponent, operator: OverriderOperator, value: &str) {
        match component {
            ImageComponent::Registry => change_text(&mut self.registry, operator, value),
            ImageComponent::Repository => change_text(&mut self.repository, operator, value),
            ImageComponent::Tag => self.change_tag(operator, value),
        }
    }

    fn change_tag(&mut self, operator: OverriderOperator, value: &str) {
        let mut text = if self.tag.is_empty() { self.digest.clone() } else { self.tag.clone() };
        change_text(&mut text, operator, value);
        if text.is_empty() || is_tag(&text) {
            (self.tag, self.digest) = (text, String::new());
        } else if is_digest(&text) {
            (self.tag, self.digest) = (String::new(), text);
        }
    }
}

fn change_text(text: &mut String, operator: OverriderOperator, value: &str) {
    match operator {
        OverriderOperator::Add => text.push_str(value),
        OverriderOperator::Replace => value.clone_into(text),
        OverriderOperator::Remove => text.clear(),
    }
}

fn parse(text: &str) -> Option<Image> {
    let (rest, digest) = text.split_once('@').unwrap_or((text, ""));
    if text.contains('@') && !is_digest(digest) {
        return None;
    }
    // A colon before the last slash belongs to the registry's port.
    let name_end = rest.rfind('/').map_or(0, |slash| slash + 1);
    let tag_at = rest[name_end..].find(':').map(|colon| name_end + colon);
    let (name, tag) = tag_at.map_or((rest, ""), |at| (&rest[..at], &rest[at + 1..]));
    if tag_at.is_some() && !is_tag(tag) || name.len() > NAME_LENGTH_MAX {
        return None;
    }
    let (registry, repository) = match name.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest),
        _ => ("", name),
    };
    let valid =
        (registry.is_empty() || is_registry(registry)) && repository.split('/').all(is_path_component);
    valid.then(|| Image {
        registry: registry.to_owned(),
        repository: repository.to_owned(),
        tag: tag.to_owned(),
        digest: digest.to_owned(),
    })
}

fn is_registry(text: &str) -> bool {
    let (host, port) = text.split_once(':').unwrap_or((text, "0"));
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    host.split('.').all(is_label) && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// Lower-case words joined by one dot, one or two underscores, or dashes.
fn is_path_component(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let ends_are_words =
        bytes.first().is_some_and(|byte| is_word(*byte)) && bytes.last().is_some_and(|byte| is_word(*byte));
    let mut separators = text.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    ends_are_words
        && separators.all(|separator| {
            matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
        })
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= TAG_LENGTH_MAX
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || byte == b'.' || byte == b'-')
}

fn is_digest(text: &str) -> bool {
    let Some((algorithm, hex)) = text.split_once(':') else { return false };
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic()) && part.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    algorithm.split(['-', '_', '+', '.']).all(is_part)
        && hex.len() >= 32
        && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DIGEST: &str = "sha256:50d858e0985ecc7f60418aaf0cc5ab587f42c2570a884095a9e8ccacd0f6545c";

    #[test]
    fn names_fall_into_their_parts() {
        let digested = format!("localhost/a@{DIGEST}");
        for (text, registry, repository, tag, digest) in [
            ("nginx", "", "nginx", "", ""),
            ("nginx:1.19.0", "", "nginx", "1.19.0", ""),
            ("library/nginx", "", "library/nginx", "", ""),
            ("registry.k8s.io/a/b:v1", "registry.k8s.io", "a/b", "v1", ""),
            ("fictional.registry.example:10443/x", "fictional.registry.example:10443", "x", "", ""),
            (&digested, "localhost", "a", "", DIGEST),
        ] {
            let image: Image = text.parse().expect(text);
            let parts = [&image.registry, &image.repository, &image.tag, &image.digest];
            assert_eq!(parts, [registry, repository, tag, digest], "{text}");
            assert_eq!(image.to_string(), text);
        }
        for text in [
            "",
            "Nginx",
            ":1",
            "a:",
            "a:b:c",
            "/a",
            "a/",
            "a//b",
            "a@sha256:12",
            "a b",
            "a.b/",
            "-a",
            "a___b",
        ] {
            assert!(text.parse::<Image>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn one_part_changes() {
        use ImageComponent::*;
        use OverriderOperator::*;
        let digested = format!("nginx@{DIGEST}");
        for (image, component, operator, value, expected) in [
            ("nginx", Registry, Add, "test.com", "test.com/nginx"),
            ("a.b/nginx", Registry, Add, ".cn", "a.b.cn/nginx"),
            ("a.b/nginx", Registry, Replace, "c.d:5000", "c.d:5000/nginx"),
            ("a.b/nginx", Registry, Remove, "", "nginx"),
            ("a.b/nginx", Repository, Add, "/nginx", "a.b/nginx/nginx"),
            ("nginx", Repository, Replace, "busybox", "busybox"),
            ("nginx:1.19.0", Tag, Add, "-alpine", "nginx:1.19.0-alpine"),
            ("nginx:1.19.0", Tag, Replace, "1.20", "nginx:1.20"),
            ("nginx", Tag, Replace, "1.20", "nginx:1.20"),
            ("nginx:1.19.0", Tag, Remove, "", "nginx"),
            ("nginx:1", Tag, Replace, DIGEST, &digested),
            (&digested, Tag, Replace, "1.2", "nginx:1.2"),
            (&digested, Tag, Remove, "", "nginx"),
            ("nginx:1", Tag, Replace, "not a tag", "nginx:1"),
        ] {
            let mut changed: Image = image.parse().expect(image);
            changed.change(component, operator, value);
            assert_eq!(changed.to_string(), expected, "{image} {component:?} {operator:?} {value}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn reading_never_panics_and_round_trips(
            text in "([a-z0-9.]{1,8}(:[0-9]{1,3})?/)?[a-z0-9._-]{1,8}(:[A-Za-z0-9._-]{1,6})?|\\PC{0,16}",
        ) {
            if let Ok(image) = text.parse::<Image>() {
                prop_assert_eq!(image.to_string(), text);
            }
        }
    }
}
