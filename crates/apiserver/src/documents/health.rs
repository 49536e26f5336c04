//! The health endpoints `/healthz`, `/livez` and `/readyz`, with the wording and the options of kube-apiserver. A
//! server that answers is live unless a task has ended that cannot be restarted; it is ready if it can also write.

use http::Response;

use crate::body::Body;
use crate::request::Query;
use apimachinery::error::ApiError;

/// The checks that can be requested by name.
const CHECKS: [&str; 3] = ["ping", "store", "tasks"];

/// The failures that the checks report.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// Why nothing can be written.
    pub writes_fail: Option<String>,
    /// Why this process must be restarted.
    pub failure: Option<String>,
}

impl State {
    /// Why a check fails. Reads still work while writes fail, so a failed disk does not fail liveness; it fails
    /// readiness.
    fn problem(&self, probe: &str, check: &str) -> Option<&str> {
        match check {
            "store" if probe != "livez" => self.writes_fail.as_deref(),
            "tasks" => self.failure.as_deref(),
            _ => None,
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
        true => Ok(text(verbose(probe, &excluded))),
        false => Ok(text(String::from("ok"))),
    }
}

fn verbose(probe: &str, excluded: &[&str]) -> String {
    let line = |check: &str| match excluded.contains(&check) {
        true => format!("[+]{check} excluded: ok\n"),
        false => format!("[+]{check} ok\n"),
    };
    let mut lines: String = CHECKS.into_iter().map(line).collect();
    for stranger in excluded.iter().filter(|name| !CHECKS.contains(name)) {
        lines += &format!("warn: some health checks cannot be excluded: no matches for {stranger:?}\n");
    }
    lines + probe + " check passed\n"
}

fn failed(probe: &str, asked: &[&str], state: &State) -> Response<Body> {
    let line = |check: &&str| match state.problem(probe, check) {
        Some(why) => format!("[-]{check} failed: {why}\n"),
        None => format!("[+]{check} ok\n"),
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

    #[test]
    fn probes_say_what_they_looked_at() {
        assert_eq!(verbose("readyz", &[]), "[+]ping ok\n[+]store ok\n[+]tasks ok\nreadyz check passed\n");
        let excluded = verbose("livez", &["ping"]);
        assert_eq!(excluded, "[+]ping excluded: ok\n[+]store ok\n[+]tasks ok\nlivez check passed\n");
        let warned = verbose("livez", &["x"]);
        assert!(
            warned.contains("warn: some health checks cannot be excluded: no matches for \"x\"\n"),
            "{warned}"
        );
    }

    #[test]
    fn only_what_there_is_can_be_asked_for() {
        let well = State::default();
        assert!(answer("readyz", &["ping"], "", &well).is_ok());
        assert_eq!(answer("readyz", &["nothing"], "", &well).unwrap_err().code, 404);
        assert_eq!(answer("readyz", &["ping", "x"], "", &well).unwrap_err().code, 404);
    }

    fn code(probe: &str, checks: &[&str], query: &str, state: &State) -> u16 {
        answer(probe, checks, query, state).unwrap().status().as_u16()
    }

    #[test]
    fn a_failed_disk_makes_it_unready_and_leaves_it_alive() {
        let state = State { writes_fail: Some("no space".to_owned()), failure: None };
        let code = |probe, checks, query| code(probe, checks, query, &state);
        assert_eq!((code("readyz", &[], ""), code("healthz", &["store"], "")), (500, 500));
        assert_eq!((code("livez", &[], ""), code("readyz", &["ping"], "")), (200, 200));
        assert_eq!(code("readyz", &[], "exclude=store"), 200);
    }

    #[test]
    fn a_task_that_cannot_go_on_ends_its_life() {
        let state = State { writes_fail: None, failure: Some("task x panicked".to_owned()) };
        let code = |probe, checks, query| code(probe, checks, query, &state);
        assert_eq!(
            (code("livez", &[], ""), code("readyz", &[], ""), code("livez", &["tasks"], "")),
            (500, 500, 500)
        );
        assert_eq!((code("livez", &["ping"], ""), code("livez", &[], "exclude=tasks")), (200, 200));
    }
}
