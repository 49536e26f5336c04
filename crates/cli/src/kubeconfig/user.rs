//! Credentials for users other than the administrator: a client certificate signed by the control plane's authority, or
//! a service account token. Both expire at a given time. Grants no rights: roles do.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use controllers::rest::Collection;
use http::Method;
use serde_json::{Value, json};

use super::{CONTROL, Credential, output};
use crate::Hint;
use crate::certificates::{self, LEAF_DAYS, client_pair, days};
use crate::connection::Connection;

/// The names that Kubernetes keeps for its own parts.
const RESERVED: &str = "system:";
/// How long a certificate lasts unless `--expires` says otherwise.
const CERTIFICATE_DAYS: i64 = 30;
/// How long a token lasts unless `--expires` says otherwise.
const TOKEN_DAYS: i64 = 1;
/// The shortest time that a TokenRequest takes.
const LIFETIME_MIN: Duration = Duration::from_secs(600);
/// The longest common name that a certificate takes.
const USER_CHARACTERS_MAX: usize = 64;

/// Flags for a user of its own.
#[derive(clap::Args)]
#[command(next_help_heading = "Another user")]
pub struct UserFlags {
    /// Create a kubeconfig with a client certificate for this user
    #[arg(long, value_name = "NAME", conflicts_with = "serviceaccount")]
    user: Option<String>,
    /// Group of the user; repeatable
    #[arg(long, value_name = "GROUP", requires = "user")]
    group: Vec<String>,
    /// Create a kubeconfig with a token for this service account
    #[arg(long, value_name = "NAMESPACE/NAME")]
    serviceaccount: Option<String>,
    /// Lifetime of the credentials, such as 90m, 12h or 7d; at most 365d [default: 30d for a user, 1d for a service
    /// account]
    #[arg(long, value_name = "DURATION", value_parser = lifetime)]
    expires: Option<Duration>,
    /// Namespace of the context [default: that of the service account, or none]
    #[arg(long, short, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Allow users and groups whose names begin with system:
    #[arg(long, requires = "user")]
    force: bool,
}

/// A user with what proves it.
pub struct Made {
    /// The name.
    pub user: String,
    pub credential: Credential,
    /// The namespace of the context; empty for none.
    pub namespace: String,
}

impl UserFlags {
    /// The user that the flags ask for; none if they ask for none.
    pub fn made(&self, data_dir: &Path) -> Result<Option<Made>> {
        if let Some(user) = &self.user {
            return self.certificate(user, data_dir).map(Some);
        }
        if let Some(account) = &self.serviceaccount {
            return crate::run_client(self.token(account, data_dir)).map(Some);
        }
        if self.expires.is_some() || self.namespace.is_some() {
            let hint = Hint(
                "choose a user with --user NAME, or a service account with --serviceaccount \
                 NAMESPACE/NAME"
                    .to_owned(),
            );
            let why = "--expires and --namespace need --user or --serviceaccount";
            return Err(anyhow::Error::new(hint).context(why));
        }
        Ok(None)
    }

    fn certificate(&self, user: &str, data_dir: &Path) -> Result<Made> {
        check_names(user, &self.group, self.force)?;
        let authority = certificates::load(data_dir)?.ok_or_else(|| {
            let hint = "an ephemeral control plane has no certificate authority on disk: use \
                        --serviceaccount with it, or pass the data directory of another control plane with \
                        --data-dir";
            anyhow::Error::new(Hint(hint.to_owned()))
                .context(format!("sign a certificate for {user:?}: no ca.key in {}", data_dir.display()))
        })?;
        let groups: Vec<&str> = self.group.iter().map(String::as_str).collect();
        let lifetime = self.expires.unwrap_or(days(CERTIFICATE_DAYS));
        let pair = client_pair(&authority, user, &groups, lifetime)
            .with_context(|| format!("sign a certificate for {user:?}"))?;
        let namespace = self.namespace.clone().unwrap_or_default();
        tell_end(user, &ends_after(lifetime), &namespace, &format!("--user={user}"));
        Ok(Made { user: user.to_owned(), credential: Credential::pair(&pair), namespace })
    }

    async fn token(&self, account: &str, data_dir: &Path) -> Result<Made> {
        let (namespace, name) = account
            .split_once('/')
            .filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty())
            .ok_or_else(|| {
                let hint = Hint("write NAMESPACE/NAME, such as team-a/deployer".to_owned());
                anyhow::Error::new(hint).context(format!("{account:?} is not a service account"))
            })?;
        let control = Connection::to(&data_dir.join("kubeconfig"), CONTROL).open().await?;
        let path = Collection::new("v1", "serviceaccounts", namespace).object(name).below("token");
        let seconds = self.expires.unwrap_or(days(TOKEN_DAYS)).as_secs();
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": { "expirationSeconds": seconds },
        });
        let asked = control.rest.send::<Value>(Method::POST, &path, "application/json", Some(&request));
        let answer = asked.await.map_err(|error| {
            let hint = Hint(format!("create it with `kubectl create serviceaccount {name} -n {namespace}`"));
            anyhow::Error::new(hint)
                .context(error)
                .context(format!("ask for a token of service account {account}"))
        })?;
        let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let token = text("/status/token").ok_or_else(|| anyhow!("the server answered without a token"))?;
        let end = text("/status/expirationTimestamp").unwrap_or_default();
        let own = self.namespace.clone().unwrap_or_else(|| namespace.to_owned());
        tell_end(account, &end, &own, &format!("--serviceaccount={namespace}:{name}"));
        Ok(Made { user: account.to_owned(), credential: Credential::Token(token), namespace: own })
    }
}

/// Names that can stand in a certificate and that are not Kubernetes' own.
fn check_names(user: &str, groups: &[String], force: bool) -> Result<()> {
    let names = std::iter::once(("user", user)).chain(groups.iter().map(|group| ("group", group.as_str())));
    for (what, name) in names {
        if name.is_empty() || name.chars().any(char::is_control) || name.chars().count() > USER_CHARACTERS_MAX
        {
            let why =
                format!("{name:?} cannot be a {what}: a certificate takes 1 to 64 printable characters");
            return Err(anyhow!(why));
        }
        if name.starts_with(RESERVED) && !force {
            let hint = format!(
                "leave it out and bind a role instead: `kubectl create rolebinding {user} \
                 --clusterrole=longshore:tenant --user={user} -n NAMESPACE`; to create it anyway, add --force"
            );
            return Err(anyhow::Error::new(Hint(hint)).context(format!(
                "{what} {name:?} is refused: names that begin with {RESERVED} are reserved for the control \
                 plane"
            )));
        }
    }
    Ok(())
}

/// Says when it ends, and how its user gets rights: the kubeconfig itself gives none.
fn tell_end(user: &str, end: &str, namespace: &str, subject: &str) {
    let namespace = if namespace.is_empty() { "NAMESPACE" } else { namespace };
    output::print_message(&format!(
        "{user} can use it until {end}, with the rights of the roles that are bound to it, such as:\n  \
         kubectl create rolebinding NAME --clusterrole=longshore:tenant {subject} -n {namespace}"
    ));
}

fn ends_after(lifetime: Duration) -> String {
    let end = jiff::Timestamp::now().checked_add(lifetime);
    end.map(|end| end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()).unwrap_or_default()
}

/// `90m`, `12h` or `7d`, between ten minutes and a year.
fn lifetime(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("{text:?} is not a duration; write minutes, hours or days, such as 90m, 12h or 7d");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let count: u64 = text.strip_suffix(unit).unwrap_or_default().parse().map_err(|_| wrong())?;
    let lifetime = Duration::from_secs(count.checked_mul(seconds).ok_or_else(wrong)?);
    match lifetime < LIFETIME_MIN || lifetime > days(LEAF_DAYS) {
        true => Err(format!("{text} is too short or too long: 10m to {LEAF_DAYS}d")),
        false => Ok(lifetime),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_bounded() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(lifetime(text).ok().map(|found| found.as_secs()), expected, "{text}");
        };
        check("10m", Some(600));
        check("12h", Some(43_200));
        check("7d", Some(604_800));
        check("365d", Some(31_536_000));
        for wrong in
            ["", "d", "7", "9m", "366d", "-1h", "1w", "99999999999999999999d", "9999999999999999999h", "1é"]
        {
            check(wrong, None);
        }
    }

    #[test]
    fn names_of_the_control_plane_itself_are_refused() {
        let check = |user: &str, group: &str, force: bool, expected: Option<&str>| {
            let found = check_names(user, &[group.to_owned()], force).err().map(|error| error.to_string());
            assert_eq!(found.as_deref().map(|text| text.split(':').next().unwrap_or_default()), expected);
        };
        check("alice", "team-a", false, None);
        check("alice", "system:masters", false, Some("group \"system"));
        check("system:kube-scheduler", "team-a", false, Some("user \"system"));
        check("alice", "system:masters", true, None);
        check("al\nice", "team-a", true, Some("\"al\\nice\" cannot be a user"));
        check("", "team-a", true, Some("\"\" cannot be a user"));
    }
}
