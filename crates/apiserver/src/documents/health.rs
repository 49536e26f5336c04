//! `/healthz`, `/livez` and `/readyz`, in the words and with the options of kube-apiserver. Who gets an answer
//! at all is alive; ready is who can also write.

use http::Response;

use crate::body::Body;
use crate::error::ApiError;
use crate::request::Query;

/// What there is to ask for by name.
const CHECKS: [&str; 2] = ["ping", "store"];

/// Answers a probe, or one check of it.
pub(super) fn answer(
    probe: &str,
    checks: &[&str],
    query: &str,
    store_refuses_writes: bool,
) -> Result<Response<Body>, ApiError> {
    let query = Query::parse(query);
    let asked = checks.first().is_none_or(|check| *check == "store");
    // Reads still work, so a failed disk is no reason to be killed; it is one to get no traffic.
    if store_refuses_writes && probe != "livez" && asked && query.get("exclude") != Some("store") {
        return Ok(unready(probe));
    }
    match checks {
        [] if query.all("verbose").next().is_some() => Ok(text(verbose(probe, query.get("exclude")))),
        [] => Ok(text(String::from("ok"))),
        [check] if CHECKS.contains(check) => Ok(text(String::from("ok"))),
        _ => Err(ApiError::no_such_path()),
    }
}

fn verbose(probe: &str, excluded: Option<&str>) -> String {
    let line = |check: &str| match excluded == Some(check) {
        true => format!("[+]{check} excluded: ok\n"),
        false => format!("[+]{check} ok\n"),
    };
    let mut lines: String = CHECKS.into_iter().map(line).collect();
    if let Some(stranger) = excluded.filter(|name| !CHECKS.contains(name)) {
        lines += &format!("warn: some health checks cannot be excluded: no matches for {stranger:?}\n");
    }
    lines + probe + " check passed\n"
}

fn unready(probe: &str) -> Response<Body> {
    let mut response = text(format!(
        "[+]ping ok\n[-]store failed: the disk failed and no more writes are taken; restart to try again\n{probe} check failed\n"
    ));
    *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
    response
}

fn text(content: String) -> Response<Body> {
    let mut response = Response::new(Body::full(content));
    let headers = response.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert("x-content-type-options", http::HeaderValue::from_static("nosniff"));
    headers.insert(http::header::CACHE_CONTROL, http::HeaderValue::from_static("no-cache, private"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_say_what_they_looked_at() {
        assert_eq!(verbose("readyz", None), "[+]ping ok\n[+]store ok\nreadyz check passed\n");
        assert_eq!(verbose("livez", Some("ping")), "[+]ping excluded: ok\n[+]store ok\nlivez check passed\n");
        let warned = verbose("livez", Some("x"));
        assert!(
            warned.contains("warn: some health checks cannot be excluded: no matches for \"x\"\n"),
            "{warned}"
        );
    }

    #[test]
    fn only_what_there_is_can_be_asked_for() {
        assert!(answer("readyz", &["ping"], "", false).is_ok());
        assert_eq!(answer("readyz", &["nothing"], "", false).unwrap_err().code, 404);
        assert_eq!(answer("readyz", &["ping", "x"], "", false).unwrap_err().code, 404);
    }

    #[test]
    fn a_failed_disk_makes_it_unready_and_leaves_it_alive() {
        let code = |probe, checks: &[&str]| answer(probe, checks, "", true).unwrap().status().as_u16();
        assert_eq!((code("readyz", &[]), code("healthz", &["store"])), (500, 500));
        assert_eq!((code("livez", &[]), code("readyz", &["ping"])), (200, 200));
    }
}
