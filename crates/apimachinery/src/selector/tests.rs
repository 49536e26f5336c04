//! Selectors against what kube-apiserver answered, and the byte scanner against the JSON parser.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const LABEL: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

#[track_caller]
fn refused(text: &str, message: &str) {
    let error = LabelSelector::parse(text).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (400, message), "{text:?}");
}

/// Every line was answered by kube-apiserver 1.35.4.
#[test]
fn label_selectors_are_refused_in_kubernetes_words() {
    refused("a=b,", "found '', expected: identifier after ','");
    refused("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
    refused("=x", "found '=', expected: !, identifier, or 'end of string'");
    refused("a in b", "unable to parse requirement: found 'b' expected: '('");
    refused("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier");
    refused("a in (x", "unable to parse requirement: found '', expected: ',' or ')'");
    refused("a in (x y)", "unable to parse requirement: found 'y', expected: ',' or ')'");
    refused("a=b=c", "found '=', expected: ',' or 'end of string'");
    refused("!a=b", "found '=', expected: ',' or 'end of string'");
    let integer = "Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer";
    refused("a>x", &format!("unable to parse requirement: values[0]: {integer}"));
    refused("a!b", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt");
    refused("a=!b", "unable to parse requirement: found '!', expected: identifier");
    refused("-a", &format!("unable to parse requirement: <nil>: Invalid value: \"-a\": name part {NAME}"));
    refused("x=@", &format!("unable to parse requirement: values[0][x]: Invalid value: \"@\": {LABEL}"));
    refused(
        "a in (b,@,-c)",
        &format!(
            "unable to parse requirement: [values[0][a]: Invalid value: \"-c\": {LABEL}, values[1][a]: Invalid value: \"@\": {LABEL}]"
        ),
    );
    refused("!", "unable to parse requirement: found '', expected: identifier");
    refused("a,,b", "found ',', expected: identifier after ','");
    refused("a in (x))", "found ')', expected: ',' or 'end of string'");
    refused("==", "found '==', expected: !, identifier, or 'end of string'");
    refused("a><1", "unable to parse requirement: found '<', expected: identifier");
    refused("(a)", "found '(', expected: !, identifier, or 'end of string'");
}

#[track_caller]
fn selects(text: &str, labels: Value, expected: bool) {
    let selector = LabelSelector::parse(text).unwrap();
    let object = json!({ "metadata": { "labels": labels, "name": "x" } });
    assert_eq!(selector.matches_labels(&object["metadata"]["labels"]), expected, "{text:?} on {object}");
    assert_eq!(selector.matches_raw(object.to_string().as_bytes()), expected, "raw {text:?} on {object}");
    let pretty = serde_json::to_vec_pretty(&object).unwrap();
    assert_eq!(selector.matches_raw(&pretty), expected, "pretty {text:?} on {object}");
}

#[test]
fn label_selectors_select() {
    selects("", json!({}), true);
    selects("a=b", json!({ "a": "b" }), true);
    selects("a==b", json!({ "a": "c" }), false);
    selects("a!=b", json!({}), true);
    selects("a!=b", json!({ "a": "b" }), false);
    selects("a in (x,y)", json!({ "a": "y" }), true);
    selects("a in (x,y)", json!({}), false);
    selects("a notin (x)", json!({}), true);
    selects("a notin (x)", json!({ "a": "x" }), false);
    selects("a", json!({ "a": "" }), true);
    selects("!a", json!({ "a": "" }), false);
    selects("a>1", json!({ "a": "2" }), true);
    selects("a>1", json!({ "a": "two" }), false);
    selects("a<3,b", json!({ "a": "-4", "b": "x" }), true);
    selects("in in (in,notin)", json!({ "in": "notin" }), true);
    selects("a in ()", json!({ "a": "" }), true);
    selects("a=", json!({ "a": "" }), true);
    selects("a.b/c = d , e", json!({ "a.b/c": "d", "e": "" }), true);
}

#[test]
fn selectors_print_as_kubernetes_prints_them() {
    let text = "z,y!=1,x in (b,a),!w,v notin (q),u>3,a=b";
    let printed = LabelSelector::parse(text).unwrap().to_string();
    assert_eq!(printed, "a=b,u>3,v notin (q),!w,x in (a,b),y!=1,z");
    let value = json!({ "matchLabels": { "b": "1" }, "matchExpressions": [
        { "key": "a", "operator": "In", "values": ["y", "x"] }, { "key": "c", "operator": "DoesNotExist" }] });
    assert_eq!(LabelSelector::from_value(&value).unwrap().to_string(), "a in (x,y),b=1,!c");
}

#[test]
fn label_selector_values_select() {
    let labels = json!({ "app": "web" });
    let check = |selector: Value, expected: bool| {
        assert_eq!(
            LabelSelector::from_value(&selector).unwrap().matches_labels(&labels),
            expected,
            "{selector}"
        );
    };
    check(Value::Null, false);
    check(json!({}), true);
    check(json!({ "matchLabels": { "app": "web" } }), true);
    check(json!({ "matchExpressions": [{ "key": "app", "operator": "NotIn", "values": ["web"] }] }), false);
    let wrong = json!({ "matchExpressions": [{ "key": "app", "operator": "Equals" }] });
    assert_eq!(
        LabelSelector::from_value(&wrong).unwrap_err(),
        "\"Equals\" is not a valid label selector operator"
    );
}

#[track_caller]
fn field_refused(group: &str, kind: &str, text: &str, message: &str) {
    let error = FieldSelector::parse(text, &SelectableFields::builtin(group, kind)).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (400, message), "{text:?}");
}

/// Every line was answered by kube-apiserver 1.35.4.
#[test]
fn field_selectors_are_refused_in_kubernetes_words() {
    field_refused("", "Pod", "x=y", "field label not supported: x");
    field_refused("", "Pod", "x", "invalid selector: 'x'; can't understand 'x'");
    field_refused("", "Pod", "metadata.name=a\\b", "invalid field selector: invalid escape sequence: \\b");
    field_refused("", "Pod", "metadata.name=a=b", "invalid field selector: unescaped character in value: 61");
    field_refused("", "Pod", "metadata.name=a\\", "invalid field selector: invalid escape sequence: \\");
    let known = "is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    field_refused("", "ConfigMap", "data.x=y", &format!("\"data.x\" {known}"));
    field_refused("apps", "ReplicaSet", "status.replicas=1", &format!("\"status.replicas\" {known}"));
    field_refused("batch", "Job", "x=y", "field label \"x\" not supported for Job");
    field_refused("", "Node", "metadata.namespace=y", "field label not supported: metadata.namespace");
    field_refused("events.k8s.io", "Event", "source=a", "field label not supported: source");
}

#[track_caller]
fn field_selects(group: &str, kind: &str, text: &str, object: &Value, expected: bool) {
    let selector = FieldSelector::parse(text, &SelectableFields::builtin(group, kind)).unwrap();
    assert_eq!(selector.matches_raw(object.to_string().as_bytes()), expected, "{text:?} on {object}");
}

#[test]
fn field_selectors_select() {
    let pod = json!({ "metadata": { "name": "a", "namespace": "b" }, "spec": { "nodeName": "n" },
        "status": { "phase": "Running", "podIPs": [{ "ip": "10.0.0.1" }, { "ip": "::1" }] } });
    field_selects("", "Pod", "metadata.name=a,metadata.namespace!=c", &pod, true);
    field_selects("", "Pod", "status.phase==Running,,", &pod, true);
    field_selects("", "Pod", "status.phase!=Running", &pod, false);
    field_selects("", "Pod", "spec.host=n", &pod, true);
    field_selects("", "Pod", "status.podIP=10.0.0.1,spec.hostNetwork=false", &pod, true);
    field_selects("", "Pod", "spec.nodeName=", &pod, false);
    field_selects("", "Node", "spec.unschedulable=true", &json!({ "spec": { "unschedulable": true } }), true);
    field_selects("", "Node", "spec.unschedulable=false", &json!({}), true);
    field_selects("batch", "Job", "status.successful=0", &json!({}), true);
    let event = json!({ "involvedObject": { "kind": "Pod" }, "source": { "component": "" }, "reportingComponent": "kubelet" });
    field_selects("", "Event", "source=kubelet,involvedObject.kind=Pod", &event, true);
    field_selects("events.k8s.io", "Event", "regarding.kind=Pod", &event, true);
    field_selects("", "ConfigMap", "metadata.name=a\\,b", &json!({ "metadata": { "name": "a,b" } }), true);
}

#[test]
fn custom_kinds_offer_their_selectable_fields() {
    let offered = SelectableFields::custom(true, [".spec.color", ".spec.size"]);
    let selector = FieldSelector::parse("spec.color=blue,spec.size!=3", &offered).unwrap();
    assert!(selector.matches_raw(br#"{ "spec": { "color": "blue", "size": 4 } }"#));
    assert!(!selector.matches_raw(br#"{ "spec": { "color": "blue", "size": 3 } }"#));
    assert_eq!(selector.exact("spec.color"), Some("blue"));
    assert_eq!(selector.exact("spec.size"), None);
    let error =
        FieldSelector::parse("metadata.namespace=a", &SelectableFields::custom(false, [])).unwrap_err();
    assert_eq!(error.message, "field label not supported: metadata.namespace");
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
        Just(Value::from("\"}{][,:\\")),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[abc\"\\\\]{0,2}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_scanner_finds_what_the_parser_finds(value in json_value(), keys in prop::collection::vec("[abc\"\\\\]{0,2}", 0..4)) {
        let path: Vec<&str> = keys.iter().map(String::as_str).collect();
        let expected = path.iter().try_fold(&value, |value, key| value.as_object()?.get(*key));
        for bytes in [serde_json::to_vec(&value).unwrap(), serde_json::to_vec_pretty(&value).unwrap()] {
            let found = scan::find(&bytes, &path).map(|found| serde_json::from_slice::<Value>(found).unwrap());
            prop_assert_eq!(found.as_ref(), expected);
        }
    }

    #[test]
    fn nothing_panics(text in ".{0,40}", bytes in prop::collection::vec(prop::sample::select(b"{}[]\",:\\ a1".to_vec()), 0..40)) {
        let _ = LabelSelector::parse(&text);
        let _ = FieldSelector::parse(&text, &SelectableFields::builtin("", "Pod"));
        let _ = scan::find(&bytes, &["a", "a"]);
        let _ = scan::first(&bytes);
    }
}
