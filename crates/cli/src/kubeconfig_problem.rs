//! Errors of kubeconfig files in plain words, instead of the texts of the client library.

use kube::config::{KubeconfigError, LoadDataError};

/// What is wrong with a kubeconfig.
pub fn kubeconfig_problem(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::CurrentContextNotSet => "it has no current context".to_owned(),
        KubeconfigError::KindMismatch | KubeconfigError::ApiVersionMismatch => {
            "its kind is not Config, or its apiVersion not v1".to_owned()
        }
        KubeconfigError::LoadContext(name) => format!("it has no context {name:?}"),
        KubeconfigError::LoadClusterOfContext(name) => {
            format!("it has no cluster {name:?}, which the context names")
        }
        KubeconfigError::ReadConfig(source, _) => source.to_string(),
        KubeconfigError::Parse(error) => format!("it is not a kubeconfig: {}", scenario::yaml_problem(error)),
        KubeconfigError::MissingClusterUrl => "its cluster has no server".to_owned(),
        KubeconfigError::ParseClusterUrl(_) => "the server of its cluster is not a URL".to_owned(),
        KubeconfigError::ParseProxyUrl(_) => "the proxy-url of its cluster is not a URL".to_owned(),
        KubeconfigError::LoadCertificateAuthority(source) => of_data("certificate authority", source),
        KubeconfigError::LoadClientCertificate(source) => of_data("client certificate", source),
        KubeconfigError::LoadClientKey(source) => of_data("client key", source),
        KubeconfigError::ParseCertificates(_) => "its certificate authority is not in PEM".to_owned(),
        _ => "it cannot be used".to_owned(),
    }
}

fn of_data(what: &str, error: &LoadDataError) -> String {
    match error {
        LoadDataError::DecodeBase64(_) => format!("its {what} is not in base64"),
        LoadDataError::ReadFile(source, path) => format!("read its {what} {}: {source}", path.display()),
        LoadDataError::NoBase64DataOrFile => format!("it has no {what}"),
    }
}

#[cfg(test)]
mod tests {
    use kube::config::{KubeConfigOptions, Kubeconfig};

    use super::*;

    #[tokio::test]
    async fn a_kubeconfig_that_cannot_be_used_says_why_in_plain_words() {
        let check = async |text: &str, expected: &str| {
            let read = Kubeconfig::from_yaml(text);
            let problem = match read {
                Err(error) => kubeconfig_problem(&error),
                Ok(file) => {
                    let used =
                        kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
                    kubeconfig_problem(&used.expect_err("it cannot be used"))
                }
            };
            assert!(problem.starts_with(expected), "{problem}");
        };
        check("contexts: [", "it is not a kubeconfig: ").await;
        check("apiVersion: v1\nkind: Config\n", "it has no current context").await;
        check("current-context: a\ncontexts: []\n", "it has no context \"a\"").await;
        let context = "current-context: a\ncontexts: [{ name: a, context: { cluster: c, user: u } }]\n";
        check(context, "it has no cluster \"c\", which the context names").await;
    }
}
