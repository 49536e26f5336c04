//! The health endpoints `/healthz`, `/livez` and `/readyz`, with the wording and the options of kube-apiserver. A
//! server that answers is live unless a task has ended that cannot be restarted, or its store can be written only after
//! a restart; it is ready if it can also write.

use http::Response;

use crate::http::{Body, Query};
use apimachinery::error::ApiError;

/// The checks that can be requested by name.
const CHECKS: [&str; 4] = ["ping", "storage-limit", "store", "tasks"];

/// The failures that the checks report.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// Why nothing can be written.
    pub writes_fail: Option<String>,
    /// Whether that lasts until a restart.
    pub needs_restart: bool,
    /// How full the store is, or that writes are refused because it is.
    pub storage: Result<String, String>,
    /// Why this process must be restarted.
    pub failure: Option<String>,
}

impl State {
    /// Why a check fails. Reads still work while writes fail, so a full disk does not fail liveness; it fails
    /// readiness. A store that can be written only after a restart fails liveness too.
    fn problem(&self, probe: &str, check: &str) -> Option<&str> {
        match check {
            "storage-limit" if probe != "livez" => self.storage.as_ref().err().map(String::as_str),
            "store" if probe != "livez" || self.needs_restart => self.writes_fail.as_deref(),
            "tasks" => self.failure.as_deref(),
            _ => None,
        }
    }

    /// The line of a check that passes.
    fn passed(&self, check: &str) -> String {
        match (check, &self.storage) {
            ("storage-limit", Ok(usage)) => format!("[+]{check} ok: {usage}\n"),
            _ => format!("[+]{check} ok\n"),
        }
    }
}

/// Answers a health probe, or one check of it.
pub(super) fn answer(
    probe: &str,
    checks: &[&str],
    query: &str,
    state: &State,
) -> Result<Response<Body>, ApiError> {
    let query = Query::parse(query);
    let excluded: Vec<&str> = query.all("exclude").collect();
    let asked: Vec<&str> = match checks {
        [] => CHECKS.into_iter().filter(|check| !excluded.contains(check)).collect(),
        [check] if CHECKS.contains(check) => vec![check],
        _ => return Err(ApiError::no_such_path()),
    };
    if asked.iter().any(|check| state.problem(probe, check).is_some()) {
        return Ok(failed(probe, &asked, state));
    }
    match checks.is_empty() && query.all("verbose").next().is_some() {
        true => Ok(text(verbose(probe, &excluded, state))),
        false => Ok(text(String::from("ok"))),
    }
}

fn verbose(probe: &str, excluded: &[&str], state: &State) -> String {
    let line = |check: &str| match excluded.contains(&check) {
        true => format!("[+]{check} excluded: ok\n"),
        false => state.passed(check),
    };
    let mut lines: String = CHECKS.into_iter().map(line).collect();
    for unknown in excluded.iter().filter(|name| !CHECKS.contains(name)) {
        lines += &format!("warn: some health checks cannot be excluded: no matches for {unknown:?}\n");
    }
    lines + probe + " check passed\n"
}

fn failed(probe: &str, asked: &[&str], state: &State) -> Response<Body> {
    let line = |check: &&str| match state.problem(probe, check) {
        Some(why) => format!("[-]{check} failed: {why}\n"),
        None => state.passed(check),
    };
    let lines: String = asked.iter().map(line).collect();
    let mut response = text(lines + probe + " check failed\n");
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

    fn healthy() -> State {
        State { writes_fail: None, needs_restart: false, storage: Ok("7 % used".to_owned()), failure: None }
    }

    #[test]
    fn verbose_probes_list_their_checks() {
        let lines = "[+]ping ok\n[+]storage-limit ok: 7 % used\n[+]store ok\n[+]tasks ok\n";
        assert_eq!(verbose("readyz", &[], &healthy()), format!("{lines}readyz check passed\n"));
        let excluded = verbose("livez", &["ping"], &healthy());
        let lines = lines.replace("[+]ping ok", "[+]ping excluded: ok");
        assert_eq!(excluded, format!("{lines}livez check passed\n"));
        let warned = verbose("livez", &["x"], &healthy());
        assert!(
            warned.contains("warn: some health checks cannot be excluded: no matches for \"x\"\n"),
            "{warned}"
        );
    }

    #[test]
    fn unknown_checks_are_not_found() {
        assert!(answer("readyz", &["ping"], "", &healthy()).is_ok());
        assert_eq!(answer("readyz", &["nothing"], "", &healthy()).unwrap_err().code, 404);
        assert_eq!(answer("readyz", &["ping", "x"], "", &healthy()).unwrap_err().code, 404);
    }

    fn code(probe: &str, checks: &[&str], query: &str, state: &State) -> u16 {
        answer(probe, checks, query, state).unwrap().status().as_u16()
    }

    #[test]
    fn a_full_disk_fails_readiness_and_not_liveness() {
        let state = State { writes_fail: Some("no space".to_owned()), ..healthy() };
        let code = |probe, checks, query| code(probe, checks, query, &state);
        assert_eq!((code("readyz", &[], ""), code("healthz", &["store"], "")), (500, 500));
        assert_eq!((code("livez", &[], ""), code("readyz", &["ping"], "")), (200, 200));
        assert_eq!(code("readyz", &[], "exclude=store"), 200);
    }

    #[test]
    fn a_store_that_needs_a_restart_fails_liveness() {
        let state = State { writes_fail: Some("it panicked".to_owned()), needs_restart: true, ..healthy() };
        let code = |probe, query| code(probe, &[], query, &state);
        assert_eq!((code("livez", ""), code("readyz", ""), code("healthz", "")), (500, 500, 500));
        assert_eq!(code("livez", "exclude=store"), 200);
    }

    #[test]
    fn a_full_store_fails_readiness_only() {
        let state = State { storage: Err("writes are refused".to_owned()), ..healthy() };
        let code = |probe| code(probe, &[], "", &state);
        assert_eq!((code("livez"), code("readyz"), code("healthz")), (200, 500, 500));
    }

    #[test]
    fn a_task_that_ended_fails_liveness_and_readiness() {
        let state = State { failure: Some("task x panicked".to_owned()), ..healthy() };
        let code = |probe, checks, query| code(probe, checks, query, &state);
        assert_eq!(
            (code("livez", &[], ""), code("readyz", &[], ""), code("livez", &["tasks"], "")),
            (500, 500, 500)
        );
        assert_eq!((code("livez", &["ping"], ""), code("livez", &[], "exclude=tasks")), (200, 200));
    }
}
