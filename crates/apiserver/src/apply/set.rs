//! Sets of field paths, as a tree, with the algebra that ownership needs.
//! Knows nothing of objects or schemas.

use std::cmp::Ordering;

use super::element::PathElement;

/// A set of field paths. A path may be a member without the paths below it, and the other way round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathSet {
    /// Sorted by element, each with something in it.
    nodes: Vec<Node>,
}

/// What a set holds at and below one element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
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
                node.below = match node.below.is_empty() {
                    true => below,
                    false => node.below.union(&below),
                };
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
            [name] => self.at(&PathElement::field(name)).is_some_and(|node| node.member),
            [name, rest @ ..] => {
                self.at(&PathElement::field(name)).is_some_and(|node| node.below.has_fields(rest))
            }
        }
    }

    /// Paths in either set.
    pub fn union(&self, other: &Self) -> Self {
        self.combine(other, |left, right| match (left, right) {
            (Some(left), Some(right)) => Some(Node {
                element: left.element.clone(),
                member: left.member || right.member,
                below: left.below.union(&right.below),
            }),
            (one, another) => one.or(another).cloned(),
        })
    }

    /// Paths in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |left, right| {
            let (left, right) = (left?, right?);
            Some(Node {
                element: left.element.clone(),
                member: left.member && right.member,
                below: left.below.intersection(&right.below),
            })
        })
    }

    /// Paths in this set and not in the other.
    pub fn difference(&self, other: &Self) -> Self {
        self.combine(other, |left, right| {
            let (left, Some(right)) = (left?, right) else { return left.cloned() };
            Some(Node {
                element: left.element.clone(),
                member: left.member && !right.member,
                below: left.below.difference(&right.below),
            })
        })
    }

    /// Paths in this set that are neither in the other nor below a path in it.
    pub fn difference_below(&self, other: &Self) -> Self {
        self.combine(other, |left, right| {
            let (left, Some(right)) = (left?, right) else { return left.cloned() };
            (!right.member).then(|| Node {
                element: left.element.clone(),
                member: left.member,
                below: left.below.difference_below(&right.below),
            })
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

    /// Pairs up the nodes of both sets and keeps what is not empty.
    fn combine(&self, other: &Self, choose: impl Fn(Option<&Node>, Option<&Node>) -> Option<Node>) -> Self {
        let (mut left, mut right) = (self.nodes.iter().peekable(), other.nodes.iter().peekable());
        let mut nodes = Vec::new();
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => return Self { nodes },
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(left), Some(right)) => left.element.cmp(&right.element),
            };
            let node = match order {
                Ordering::Less => choose(left.next(), None),
                Ordering::Equal => choose(left.next(), right.next()),
                Ordering::Greater => choose(None, right.next()),
            };
            nodes.extend(node.filter(|node| node.member || !node.below.is_empty()));
        }
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
