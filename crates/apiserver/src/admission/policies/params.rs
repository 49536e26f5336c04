//! Parameter objects (`paramRef`): finds the objects that a binding passes to its policy.

use serde_json::Value;
use store::Range;

use super::binding::Binding;
use super::policy::Policy;
use crate::admission::{AdmissionChain, WriteAttributes};
use crate::storage::{stored, text};
use apimachinery::selector::LabelSelector;

/// More parameters than a policy can be meant for.
const PARAMS_MAX: usize = 100;

impl AdmissionChain {
    /// The parameters, one evaluation each; `null` for a policy without any.
    pub(super) fn params(
        &self,
        policy: &Policy,
        binding: &Binding,
        attributes: &WriteAttributes<'_>,
    ) -> Result<Vec<Value>, String> {
        let reference = &binding.params;
        let (Some((api_version, kind)), true) = (&policy.param_kind, reference.is_object()) else {
            return Ok(vec![Value::Null]);
        };
        let registry = self.registry.load();
        let unknown =
            || format!("failed to find resource referenced by paramKind: '{api_version}, Kind={kind}'");
        let resource = registry.by_kind(api_version, kind).ok_or_else(unknown)?;
        let given = text(reference, "/namespace");
        if !given.is_empty() && !resource.namespaced {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
        }
        let namespace = match (resource.namespaced, given) {
            (false, _) => "",
            (true, "") => attributes.call.namespace.as_deref().unwrap_or_default(),
            (true, given) => given,
        };
        if resource.namespaced && namespace.is_empty() {
            return Err(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                    .to_owned(),
            );
        }
        let found = match text(reference, "/name") {
            "" => self.selected(&resource.table, namespace, &reference["selector"])?,
            name => {
                let entry = self.store.get(&resource.table, &resource.key(Some(namespace), name));
                entry.into_iter().map(|entry| stored::parse(&entry.value)).collect()
            }
        };
        match found.is_empty() && reference["parameterNotFoundAction"] != "Allow" {
            true => Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned()),
            false => Ok(found.into_iter().map(|object| resource.serve(object)).collect()),
        }
    }

    fn selected(&self, table: &str, namespace: &str, selector: &Value) -> Result<Vec<Value>, String> {
        let selector = LabelSelector::from_value(selector)?;
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        let page = self.store.range(table, Range { prefix: &prefix, ..Range::default() });
        let entries = page.map(|page| page.entries).unwrap_or_default();
        let all = entries.iter().map(|entry| stored::parse(&entry.value));
        let mut found: Vec<Value> = all
            .filter(|object| selector.matches_labels(&object["metadata"]["labels"]))
            .take(PARAMS_MAX + 1)
            .collect();
        if found.len() > PARAMS_MAX {
            return Err(format!("more than {PARAMS_MAX} params found for policy binding"));
        }
        found.sort_by(|one, two| text(one, "/metadata/name").cmp(text(two, "/metadata/name")));
        Ok(found)
    }
}
