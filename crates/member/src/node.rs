//! Scheduling of pods onto nodes: the nodes' capacity against the pods' requests. Must not know how either is written.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::amounts::{Amounts, Wish};
use crate::facts;

/// The nodes and what is left on them.
#[derive(Debug, Default)]
pub struct Nodes {
    nodes: BTreeMap<Arc<str>, facts::Node>,
    /// What pods take, also of nodes that are not known (yet).
    used: BTreeMap<Arc<str>, Amounts>,
    /// What pods will take that are being written right now.
    promised: BTreeMap<Arc<str>, Amounts>,
}

impl Nodes {
    pub fn put(&mut self, name: &str, node: facts::Node) {
        self.nodes.insert(name.into(), node);
    }

    pub fn remove(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    pub fn contains(&self, name: &str) -> bool {
        self.nodes.contains_key(name)
    }

    /// The names of nodes whose labels fit a selector, in order.
    pub fn selected(&self, selector: &BTreeMap<String, String>) -> Vec<Arc<str>> {
        let fits = self.nodes.iter().filter(|(_, node)| has_labels(node, selector));
        fits.map(|(name, _)| name.clone()).collect()
    }

    /// A pod began to take room on a node.
    pub fn take(&mut self, node: &Arc<str>, needs: Amounts) {
        *self.used.entry(node.clone()).or_default() += needs;
    }

    /// A pod's room on a node is free again.
    pub fn release(&mut self, node: &Arc<str>, needs: Amounts) {
        if let Some(used) = self.used.get_mut(node) {
            *used -= needs;
            if used.pods <= 0 {
                self.used.remove(node);
            }
        }
    }

    /// The open node with the fewest pods that has room, if there is one.
    pub fn fitting(&self, wish: &Wish) -> Option<Arc<str>> {
        let open = self.nodes.iter().filter(|(_, node)| node.open && has_labels(node, &wish.selector));
        let fits = open.filter(|(name, node)| self.shortage(name, node, wish.needs).is_none());
        let fewest = fits.min_by_key(|(name, _)| self.load(name).pods);
        fewest.map(|(name, _)| name.clone())
    }

    /// Like [`Self::fitting`], and keeps the room until [`Self::forget_promises`].
    pub fn promise(&mut self, wish: &Wish) -> Option<Arc<str>> {
        let node = self.fitting(wish)?;
        *self.promised.entry(node.clone()).or_default() += wish.needs;
        Some(node)
    }

    /// What was promised has been written, and is counted as taken by now.
    pub fn forget_promises(&mut self) {
        self.promised.clear();
    }

    /// Why no node takes a pod, in the scheduler's words.
    pub fn refusal(&self, wish: &Wish) -> String {
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for (name, node) in &self.nodes {
            let reason = match (node.open, has_labels(node, &wish.selector)) {
                (false, _) => "node(s) were unschedulable",
                (true, false) => "node(s) didn't match Pod's node affinity/selector",
                (true, true) => self.shortage(name, node, wish.needs).unwrap_or("node(s) were busy"),
            };
            *reasons.entry(reason).or_default() += 1;
        }
        let reasons: Vec<String> =
            reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        match reasons.is_empty() {
            true => "no nodes available to schedule pods".to_owned(),
            false => format!("0/{} nodes are available: {}.", self.nodes.len(), reasons.join(", ")),
        }
    }

    fn load(&self, name: &str) -> Amounts {
        let of = |map: &BTreeMap<Arc<str>, Amounts>| map.get(name).copied().unwrap_or_default();
        of(&self.used) + of(&self.promised)
    }

    fn shortage(&self, name: &str, node: &facts::Node, needs: Amounts) -> Option<&'static str> {
        let left = node.allocatable - self.load(name);
        match () {
            () if needs.pods > left.pods => Some("Too many pods"),
            () if needs.cpu_milli > 0 && needs.cpu_milli > left.cpu_milli => Some("Insufficient cpu"),
            () if needs.memory_bytes > 0 && needs.memory_bytes > left.memory_bytes => {
                Some("Insufficient memory")
            }
            () => None,
        }
    }
}

fn has_labels(node: &facts::Node, selector: &BTreeMap<String, String>) -> bool {
    selector.iter().all(|(key, value)| node.labels.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(cpu_milli: i64, memory_bytes: i64, pods: i64) -> Amounts {
        Amounts { cpu_milli, memory_bytes, pods }
    }

    fn nodes() -> Nodes {
        let mut nodes = Nodes::default();
        for (name, zone, cpu) in [("n1", "a", 1000), ("n2", "b", 2000)] {
            let labels = BTreeMap::from([("zone".to_owned(), zone.to_owned())]);
            nodes.put(name, facts::Node { allocatable: amounts(cpu, 1000, 2), labels, open: true });
        }
        nodes
    }

    fn wish(cpu_milli: i64) -> Wish {
        Wish { needs: amounts(cpu_milli, 0, 1), selector: BTreeMap::new() }
    }

    #[test]
    fn pods_spread_over_nodes_that_have_room() {
        let mut nodes = nodes();
        let placed: Vec<_> = (0..5).map(|_| nodes.promise(&wish(400)).map(|name| name.to_string())).collect();
        let name = |text: &str| Some(text.to_owned());
        assert_eq!(placed, [name("n1"), name("n2"), name("n1"), name("n2"), None]);
        assert_eq!(nodes.refusal(&wish(400)), "0/2 nodes are available: 2 Too many pods.");
        nodes.forget_promises();
        assert_eq!(nodes.fitting(&wish(1500)).as_deref(), Some("n2"));
        assert_eq!(nodes.refusal(&wish(5000)), "0/2 nodes are available: 2 Insufficient cpu.");
    }

    #[test]
    fn room_that_is_given_back_can_be_taken_again() {
        let mut nodes = nodes();
        let node: Arc<str> = "n1".into();
        nodes.take(&node, amounts(1000, 0, 1));
        let mut wish = wish(1000);
        wish.selector.insert("zone".to_owned(), "a".to_owned());
        assert_eq!(nodes.fitting(&wish), None);
        nodes.release(&node, amounts(1000, 0, 1));
        assert_eq!(nodes.fitting(&wish), Some(node));
    }

    #[test]
    fn closed_nodes_take_nothing() {
        let mut nodes = nodes();
        for name in ["n1", "n2"] {
            nodes.put(name, facts::Node::default());
        }
        assert_eq!(nodes.fitting(&wish(0)), None);
        assert_eq!(nodes.refusal(&wish(0)), "0/2 nodes are available: 2 node(s) were unschedulable.");
        assert_eq!(Nodes::default().refusal(&wish(0)), "no nodes available to schedule pods");
    }
}
