use clap::Parser as _;

use super::*;

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    arguments: Arguments,
}

fn arguments(words: &[&str]) -> Arguments {
    Line::try_parse_from(["join"].iter().chain(words))
        .map(|line| line.arguments)
        .unwrap_or_else(|e| panic!("{e}"))
}

fn place(endpoint: &str, proxy: &str) -> MemberEndpoint {
    let (endpoint, proxy) = (endpoint.to_owned(), proxy.to_owned());
    MemberEndpoint { endpoint, authority: b"mine".to_vec(), insecure: false, proxy }
}

#[test]
fn a_control_plane_is_not_its_own_member() {
    let refusal = check_not_control_plane("member1", "same", "same").expect_err("it is the same");
    assert!(refusal.to_string().contains("the control plane itself"), "{refusal}");
    assert!(check_not_control_plane("member1", "one", "other").is_ok());
    assert!(check_not_control_plane("member1", "", "other").is_ok());
}

#[test]
fn what_is_not_said_again_stays() {
    let known = json!({
        "provider": "p", "region": "r", "zones": ["a", "b"], "proxyURL": "http://proxy",
        "apiEndpoint": "https://10.0.0.5:6443",
    });
    let known: Cluster =
        serde_json::from_value(json!({ "metadata": { "name": "m" }, "spec": known })).expect("a cluster");
    let said = arguments(&["m", "--rotate", "--cluster-region=s"]);
    let spec = &manifest(&said, "ns", &place("https://10.0.0.5:6443", ""), "id", Some(&known))["spec"];
    assert_eq!(
        *spec,
        json!({
            "id": "id", "syncMode": "Push", "apiEndpoint": "https://10.0.0.5:6443",
            "insecureSkipTLSVerification": false, "provider": "p", "region": "s", "zones": ["a", "b"],
            "proxyURL": "",
            "secretRef": { "namespace": "ns", "name": "m" },
            "impersonatorSecretRef": { "namespace": "ns", "name": "m-impersonator" },
        })
    );
}

#[test]
fn who_has_joined_is_not_joined_again_by_accident() {
    let cluster = |mode: &str| -> Cluster {
        let object = json!({ "metadata": { "name": "m" }, "spec": { "syncMode": mode } });
        serde_json::from_value(object).expect("a cluster")
    };
    let check = |mode: &str, rotate: bool, expected: &str| {
        let found = check_may_join("m", Some(&cluster(mode)), rotate);
        let found = found.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{found}");
    };
    check("Push", true, "");
    check("Push", false, "it has joined already");
    check("Pull", true, "it is a Pull member");
}

/// A client whose every request fails.
fn nobody() -> Rest {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        Err::<http::Response<http_body_util::Empty<bytes::Bytes>>, _>(std::io::Error::other("nobody is here"))
    });
    Rest::new(kube::Client::new(service, "default"))
}

#[tokio::test]
async fn invalid_names_are_refused_before_any_request() {
    let check = async |name: &str, expected: &str| {
        let said = arguments(&[name]);
        let cluster = manifest(&said, "ns", &place("https://10.0.0.5:6443", ""), "id", None);
        let refusal = validate_cluster(&nobody(), name, &cluster).await.expect_err("nobody answers");
        assert!(format!("{refusal:#}").contains(expected), "{name}: {refusal:#}");
    };
    check("member1", "nobody is here").await;
    check("Member", "metadata.name: ").await;
    check("a/b", "metadata.name: ").await;
    check(&"m".repeat(49), "must be 1 to 48").await;
}
