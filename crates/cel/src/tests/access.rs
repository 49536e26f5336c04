//! Questions about rights: how they are put together, what they cost, and what is no question.

use std::rc::Rc;

use super::*;

/// A user who may read maps in one namespace, and a service account that may do everything.
struct Rights;

impl<'a> Activation<'a> for Rights {
    fn variable(&self, name: &str) -> Option<Value<'a>> {
        (name == "authorizer").then(|| Value::AccessCheck(Rc::default()))
    }

    fn dotted(&self, variable: &str, field: &str) -> Option<Value<'a>> {
        let resource = Resource {
            resource: "maps".into(),
            namespace: "here".into(),
            name: "m".into(),
            ..Resource::default()
        };
        let question = AccessCheck { account: None, on: Target::Resource(resource) };
        (variable == "authorizer" && field == "requestResource")
            .then(|| Value::AccessCheck(Rc::new(question)))
    }

    fn decide(&self, question: &AccessCheck, verb: &str) -> Decision {
        let is_allowed = match (&question.account, &question.on) {
            (Some(account), _) => *account == ("ns".to_owned(), "robot".to_owned()),
            (None, Target::Path(path)) => path == "/healthz",
            (None, Target::Resource(on)) => {
                verb == "get" && (on.resource.as_str(), on.namespace.as_str()) == ("maps", "here")
            }
            _ => false,
        };
        let error = (verb == "fail").then(|| "it failed".to_owned());
        Decision { is_allowed, reason: format!("{verb} {:?}", question.on), error }
    }
}

fn answer(source: &str) -> (String, u64, u64) {
    let variables = BTreeMap::from([
        ("authorizer".to_owned(), Type::AUTHORIZER),
        ("authorizer.requestResource".to_owned(), Type::RESOURCE_CHECK),
    ]);
    let mut hooks = hooks();
    hooks.format = |_, text| Some(if text.contains('@') { vec![String::from("wrong")] } else { Vec::new() });
    let program = match Program::compile(source, &Environment { variables, hooks }) {
        Ok(program) => program,
        Err(issues) => return (format!("issue {issues}"), 0, 0),
    };
    let budget = Budget::new(1_000_000);
    let value = program.evaluate(&Rights, &budget);
    let told = value.map_or_else(|failure| format!("error {failure}"), |value| shown(&value));
    (told, program.cost_max(), budget.spent())
}

#[test]
fn permission_checks_are_decided_by_the_activation() {
    let check = |source: &str, expected: &str| assert_eq!(answer(source).0, expected, "{source}");
    check("authorizer.path('/healthz').check('get').allowed()", "true");
    check("authorizer.path('/metrics').check('get').allowed()", "false");
    check("authorizer.group('').resource('maps').namespace('here').check('get').allowed()", "true");
    check("authorizer.group('').resource('maps').namespace('there').check('get').allowed()", "false");
    check("authorizer.serviceAccount('ns', 'robot').group('a').resource('b').check('c').allowed()", "true");
    check("authorizer.serviceAccount('ns', 'other').path('/healthz').check('get').allowed()", "false");
    check("authorizer.requestResource.check('get').allowed()", "true");
    check("authorizer.requestResource.namespace('').check('get').allowed()", "false");
    check("authorizer.requestResource.check('fail').errored()", "true");
    check("authorizer.requestResource.check('fail').error()", "\"it failed\"");
    check("authorizer.requestResource.check('get').error()", "\"\"");
    let whole =
        "authorizer.group('g').resource('r').subresource('s').namespace('n').name('o').check('v').reason()";
    assert!(
        answer(whole).0.contains(r#"subresource: \"s\", namespace: \"n\", name: \"o\""#),
        "{:?}",
        answer(whole)
    );
    check(
        "authorizer.requestResource.fieldSelector('a=b').labelSelector('!').check('get').allowed()",
        "true",
    );
    check("type(authorizer) == kubernetes.authorization.Authorizer", "true");
    check(
        "authorizer.path('/a') == authorizer.path('/a') && authorizer.group('a') != authorizer.group('b')",
        "true",
    );
    check("[authorizer].all(a, a.path('/healthz').check('get').allowed())", "true");
}

#[test]
fn malformed_permission_checks_are_refused() {
    let fails = |source: &str, why: &str| assert_eq!(answer(source).0, format!("error {why}"), "{source}");
    fails("authorizer.path(' ').check('get').allowed()", "path must not be empty");
    fails("authorizer.group('').resource('').check('get').allowed()", "resource must not be empty");
    fails(
        "authorizer.serviceAccount('ns', 'a@').path('/').check('get').allowed()",
        "Invalid service account name",
    );
    fails(
        "authorizer.serviceAccount('n@', 'a').path('/').check('get').allowed()",
        "Invalid service account namespace",
    );
    fails("dyn(authorizer).check('get').allowed()", "no such overload");
    let issue = |source: &str, why: &str| {
        let found = answer(source).0;
        assert!(found.starts_with("issue ") && found.contains(why), "{source}: {found}");
    };
    issue("authorizer.check('get').allowed()", "found no matching overload for 'check'");
    issue("authorizer.group('').check('get')", "found no matching overload for 'check'");
    issue("authorizer.path('/').namespace('x')", "found no matching overload for 'namespace'");
    issue("authorizer.requestResource.allowed()", "found no matching overload for 'allowed'");
    issue("authorizer.nothing", "does not support field selection");
}

/// Every step costs one, a decision so much that an expression can ask for two.
#[test]
fn permission_checks_cost_what_kubernetes_charges() {
    let check = |source: &str, cost: u64| {
        let (_, most, spent) = answer(source);
        assert_eq!((most, spent), (cost, cost), "{source}");
    };
    check("authorizer.path('/healthz').check('get').allowed()", 350_003);
    check(
        "authorizer.group('').resource('maps').namespace('here').name('m').check('get').allowed()",
        350_006,
    );
    check("authorizer.requestResource.check('get').allowed()", 350_002);
    // Ten for a list, one for up to ten characters, fifty for two of them.
    check("authorizer.requestResource.labelSelector('a=b').check('get').allowed()", 350_002 + 10 + 1 + 100);
    let three = ["authorizer.requestResource.check('get').allowed()"; 3].join(" && ");
    assert_eq!(answer(&three).0, "error operation cancelled: actual cost limit exceeded");
}
