//! Sets of field paths, as a tree, with union, intersection and difference. Knows nothing of objects or schemas.

use std::cmp::Ordering;

use super::element::PathElement;

/// A set of field paths. A path may be a member without the paths below it, and the other way round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PathSet {
    /// Sorted by element, each with something in it.
    nodes: Vec<Node>,
}

/// What a set holds at and below one element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    /// The step that leads here.
    pub element: PathElement,
    /// Whether the path that ends here is in the set.
    pub member: bool,
    /// The longer paths that lead through here.
    pub below: PathSet,
}

impl PathSet {
    /// Whether no path is in the set.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The nodes in the order of their elements.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The nodes themselves, in the order of their elements.
    pub fn into_nodes(self) -> impl Iterator<Item = Node> {
        self.nodes.into_iter()
    }

    /// What the set holds at a field.
    pub fn at_field(&self, name: &str) -> Option<&Node> {
        let order = |node: &Node| match &node.element {
            PathElement::Field(field) => field.as_str().cmp(name),
            _ => Ordering::Greater,
        };
        let place = self.nodes.binary_search_by(order).ok()?;
        self.nodes.get(place)
    }

    /// What the set holds at an element.
    pub fn at(&self, element: &PathElement) -> Option<&Node> {
        let place = self.nodes.binary_search_by(|node| node.element.cmp(element)).ok()?;
        self.nodes.get(place)
    }

    /// Adds what a node holds.
    pub fn add(&mut self, element: PathElement, member: bool, below: PathSet) {
        if !member && below.is_empty() {
            return;
        }
        // Fields of objects come sorted, so that most additions go to the end.
        if self.nodes.last().is_none_or(|last| last.element < element) {
            self.nodes.push(Node { element, member, below });
            return;
        }
        match self.nodes.binary_search_by(|node| node.element.cmp(&element)) {
            Ok(place) => {
                let node = &mut self.nodes[place];
                node.member |= member;
                node.below.merge(below);
            }
            Err(place) => self.nodes.insert(place, Node { element, member, below }),
        }
    }

    /// Adds a path of fields.
    pub fn insert_fields(&mut self, path: &[&str]) {
        match path {
            [] => {}
            [name] => self.add(PathElement::field(name), true, Self::default()),
            [name, rest @ ..] => {
                let mut below = Self::default();
                below.insert_fields(rest);
                self.add(PathElement::field(name), false, below);
            }
        }
    }

    /// Whether the path of fields is in the set.
    pub fn has_fields(&self, path: &[&str]) -> bool {
        match path {
            [] => false,
            [name] => self.at_field(name).is_some_and(|node| node.member),
            [name, rest @ ..] => self.at_field(name).is_some_and(|node| node.below.has_fields(rest)),
        }
    }

    /// Adds all paths of another set.
    pub fn merge(&mut self, other: Self) {
        if self.nodes.is_empty() {
            *self = other;
            return;
        }
        for node in other.nodes {
            self.add(node.element, node.member, node.below);
        }
    }

    /// Removes the paths of another set.
    pub fn subtract(&mut self, other: &Self) {
        self.reduce(other, &|node, unwanted| {
            node.member &= !unwanted.member;
            node.below.subtract(&unwanted.below);
        });
    }

    /// Removes the paths of another set and everything below them.
    pub fn subtract_below(&mut self, other: &Self) {
        self.reduce(other, &|node, unwanted| match unwanted.member {
            true => (node.member, node.below) = (false, Self::default()),
            false => node.below.subtract_below(&unwanted.below),
        });
    }

    /// Keeps only the paths that are in another set as well.
    pub fn intersection(&self, other: &Self) -> Self {
        let shared = |node: &Node| {
            let other = other.at(&node.element)?;
            let member = node.member && other.member;
            let below = node.below.intersection(&other.below);
            let is_empty = !member && below.is_empty();
            (!is_empty).then(|| Node { element: node.element.clone(), member, below })
        };
        Self { nodes: self.nodes.iter().filter_map(shared).collect() }
    }

    fn reduce(&mut self, other: &Self, reduce: &dyn Fn(&mut Node, &Node)) {
        let mut has_empty = false;
        for unwanted in &other.nodes {
            let found = self.nodes.binary_search_by(|node| node.element.cmp(&unwanted.element));
            if let Some(node) = found.ok().and_then(|place| self.nodes.get_mut(place)) {
                reduce(node, unwanted);
                has_empty |= !node.member && node.below.is_empty();
            }
        }
        if has_empty {
            self.nodes.retain(|node| node.member || !node.below.is_empty());
        }
    }

    /// Whether every path is in another set as well.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.nodes.iter().all(|node| {
            other
                .at(&node.element)
                .is_some_and(|other| (!node.member || other.member) && node.below.is_subset(&other.below))
        })
    }

    /// Every path with a function of it: shorter paths first, then in order.
    pub fn for_each(&self, visit: &mut impl FnMut(&[&PathElement])) {
        fn walk<'a>(
            set: &'a PathSet,
            path: &mut Vec<&'a PathElement>,
            visit: &mut impl FnMut(&[&PathElement]),
        ) {
            for node in set.nodes.iter().filter(|node| node.member) {
                path.push(&node.element);
                visit(path);
                path.pop();
            }
            for node in &set.nodes {
                path.push(&node.element);
                walk(&node.below, path, visit);
                path.pop();
            }
        }
        walk(self, &mut Vec::new(), visit);
    }
}

impl FromIterator<Node> for PathSet {
    fn from_iter<I: IntoIterator<Item = Node>>(nodes: I) -> Self {
        let mut set = Self::default();
        for node in nodes {
            set.add(node.element, node.member, node.below);
        }
        set
    }
}
