//! Rules of probes and life-cycle hooks. Must not know whose they are.

use super::field::{Errors, Field};
use apimachinery::error::FieldError;
use apimachinery::names;

/// The three probes of a container.
pub(super) fn check_all(container: &Field<'_>, errors: &mut Errors) {
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let field = container.at(probe);
        if !field.is_set() {
            continue;
        }
        check_handler(&field, &["exec", "httpGet", "tcpSocket", "grpc"], errors);
        for number in
            ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            field.at(number).check_non_negative(errors);
        }
        let grace = field.at("terminationGracePeriodSeconds");
        if grace.number().is_some_and(|seconds| seconds <= 0) {
            errors.push(grace.invalid("must be greater than 0"));
        }
        let threshold = field.at("successThreshold");
        if probe != "readinessProbe" && threshold.number() != Some(1) {
            errors.push(threshold.invalid("must be 1"));
        }
        if probe == "readinessProbe" && grace.is_set() {
            errors.push(grace.invalid("must not be set for readinessProbes"));
        }
    }
}

/// What runs when a container has started and before it stops.
pub(super) fn check_lifecycle(lifecycle: &Field<'_>, errors: &mut Errors) {
    for hook in ["postStart", "preStop"] {
        let hook = lifecycle.at(hook);
        if hook.is_set() {
            check_handler(&hook, &["exec", "httpGet", "tcpSocket", "sleep"], errors);
        }
    }
}

fn check_handler(handler: &Field<'_>, kinds: &[&str], errors: &mut Errors) {
    let mut count = 0;
    for kind in kinds.iter().map(|kind| handler.at(kind)).filter(Field::is_set) {
        count += 1;
        if count > 1 {
            errors.push(kind.forbidden("may not specify more than 1 handler type"));
            continue;
        }
        match kind.path.rsplit('.').next() {
            Some("exec") => kind.at("command").check_required(errors),
            Some("httpGet") => check_http(&kind, errors),
            Some("tcpSocket" | "grpc") => check_port(&kind.at("port"), errors),
            _ => {}
        }
    }
    if count == 0 {
        errors.push(handler.required("must specify a handler type"));
    }
}

fn check_http(action: &Field<'_>, errors: &mut Errors) {
    action.at("path").check_required(errors);
    check_port(&action.at("port"), errors);
    action.at("scheme").check_one_of(&["HTTP", "HTTPS"], errors);
    for header in action.items("httpHeaders") {
        let name = header.at("name").text();
        let is_header =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !is_header {
            let why = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', \
                       regex used for validation is '[-A-Za-z0-9]+')";
            errors.push(FieldError::invalid(action.at("httpHeaders").path, name, why));
        }
    }
}

/// Refuses a port that is neither a number nor a port's name.
pub(super) fn check_port(port: &Field<'_>, errors: &mut Errors) {
    match port.number() {
        Some(number) => errors.extend(names::port_number(number).map(|why| port.invalid(why))),
        None => port.check_name(names::port_name, errors),
    }
}
