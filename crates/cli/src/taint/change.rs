//! Parses `key=value:Effect`, `key:Effect-` and `key-`, and applies them to a list of taints. Pure.

use std::str::FromStr;

use api::Taint;
use api::taint::{NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE};

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaintChange {
    /// Set this taint.
    Set(Taint),
    /// Remove the taints of this key, and of this effect if one is named.
    Remove {
        /// The key.
        key: String,
        /// The effect; empty for all.
        effect: String,
    },
}

/// An argument that makes no sense.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not of any known form.
    #[error("{0:?} is not a taint")]
    Form(String),
    /// An unknown effect.
    #[error(
        "{0:?} is not an effect of a taint; the effects are {NO_SCHEDULE}, {PREFER_NO_SCHEDULE} and \
         {NO_EXECUTE}"
    )]
    Effect(String),
}

/// Something that cannot be done with the taints there are.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    /// It is there already.
    #[error("it already has a taint {key}:{effect}; to replace it, add --overwrite")]
    Exists {
        /// Its key.
        key: String,
        /// Its effect.
        effect: String,
    },
    /// It is not there.
    #[error("taint {0:?} not found")]
    Missing(String),
}

impl TaintChange {
    /// True when it sets something.
    pub fn sets(&self) -> bool {
        matches!(self, TaintChange::Set(_))
    }
}

impl FromStr for TaintChange {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let malformed = || Malformed::Form(text.to_owned());
        let (body, removes) = text.strip_suffix('-').map_or((text, false), |body| (body, true));
        let (pair, effect) = body.split_once(':').unwrap_or((body, ""));
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if key.is_empty() || key.contains(char::is_whitespace) || effect.contains(':') {
            return Err(malformed());
        }
        let known = [NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE].contains(&effect);
        match (removes, effect) {
            (true, "") => Ok(TaintChange::Remove { key: key.to_owned(), effect: String::new() }),
            (false, "") => Err(malformed()),
            (_, effect) if !known => Err(Malformed::Effect(effect.to_owned())),
            (true, effect) => Ok(TaintChange::Remove { key: key.to_owned(), effect: effect.to_owned() }),
            (false, effect) => Ok(TaintChange::Set(Taint {
                key: key.to_owned(),
                value: value.to_owned(),
                effect: effect.to_owned(),
                time_added: None,
            })),
        }
    }
}

/// The taints afterwards.
pub fn changed_taints(
    mut taints: Vec<Taint>,
    changes: &[TaintChange],
    overwrite: bool,
) -> Result<Vec<Taint>, Impossible> {
    for change in changes {
        match change {
            TaintChange::Set(new) => {
                let alike =
                    taints.iter_mut().find(|taint| taint.key == new.key && taint.effect == new.effect);
                match alike {
                    Some(old) if overwrite => old.value.clone_from(&new.value),
                    Some(_) => {
                        return Err(Impossible::Exists { key: new.key.clone(), effect: new.effect.clone() });
                    }
                    None => taints.push(new.clone()),
                }
            }
            TaintChange::Remove { key, effect } => {
                let before = taints.len();
                taints.retain(|taint| taint.key != *key || !(effect.is_empty() || taint.effect == *effect));
                if taints.len() == before {
                    let colon = if effect.is_empty() { "" } else { ":" };
                    return Err(Impossible::Missing(format!("{key}{colon}{effect}")));
                }
            }
        }
    }
    Ok(taints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, changes: &str, overwrite: bool, expected: Result<&str, &str>) {
        let read =
            |text: &str| text.split_whitespace().map(str::parse).collect::<Result<Vec<TaintChange>, _>>();
        let taints = read(before).expect("taints").into_iter().filter_map(|change| match change {
            TaintChange::Set(taint) => Some(taint),
            TaintChange::Remove { .. } => None,
        });
        let after = read(changes).map_err(|error| error.to_string()).and_then(|changes| {
            changed_taints(taints.collect(), &changes, overwrite).map_err(|error| error.to_string())
        });
        let shown = |taints: Vec<Taint>| {
            let shown = taints.iter().map(plane::reports::taint);
            shown.collect::<Vec<_>>().join(" ")
        };
        let after = after.map(shown);
        assert_eq!(after.as_deref().map_err(String::as_str), expected, "{before} + {changes}");
    }

    #[test]
    fn taints_are_set_and_removed_as_kubectl_does() {
        check("", "gpu=only:NoSchedule", false, Ok("gpu=only:NoSchedule"));
        check(
            "a:NoSchedule",
            "a:NoExecute b=x:PreferNoSchedule",
            false,
            Ok("a:NoSchedule a:NoExecute b=x:PreferNoSchedule"),
        );
        check("a=1:NoSchedule", "a=2:NoSchedule", true, Ok("a=2:NoSchedule"));
        check("a:NoSchedule a:NoExecute", "a-", false, Ok(""));
        check("a:NoSchedule a:NoExecute", "a:NoExecute-", false, Ok("a:NoSchedule"));
        check("a:NoSchedule", "a=1:NoSchedule-", false, Ok(""));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        check(
            "a:NoSchedule",
            "a=2:NoSchedule",
            false,
            Err("it already has a taint a:NoSchedule; to replace it, add --overwrite"),
        );
        check("", "b-", false, Err("taint \"b\" not found"));
        check("b:NoExecute", "b:NoSchedule-", false, Err("taint \"b:NoSchedule\" not found"));
        check("", "gpu", false, Err("\"gpu\" is not a taint"));
        check("", "=x:NoSchedule", false, Err("\"=x:NoSchedule\" is not a taint"));
        check("", "-", false, Err("\"-\" is not a taint"));
        check(
            "",
            "a:Never",
            false,
            Err(
                "\"Never\" is not an effect of a taint; the effects are NoSchedule, PreferNoSchedule and NoExecute",
            ),
        );
    }
}
