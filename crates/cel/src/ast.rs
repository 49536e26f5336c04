//! The abstract syntax tree of an expression. No tree is deeper than `DEPTH_MAX`, so that walking one needs no
//! further guard.

/// The deepest tree that is accepted.
pub(crate) const DEPTH_MAX: usize = 250;

/// One expression and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expr {
    pub at: usize,
    /// How deep the tree under it is, itself included.
    pub depth: usize,
    pub node: Node,
}

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
    /// A type by its name, such as `string`.
    Type(&'static str),
}

/// How a field is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// `a.b`
    Value,
    /// `has(a.b)`
    Presence,
    /// `a.?b`
    Optional,
}

/// What stands there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Literal(Literal),
    Ident(String),
    Select {
        operand: Box<Expr>,
        field: String,
        access: Access,
    },
    /// Operators are called by cel's names for them, such as `_+_`.
    Call {
        function: String,
        target: Option<Box<Expr>>,
        args: Vec<Expr>,
    },
    /// `&&` between all of them.
    And(Vec<Expr>),
    /// `||` between all of them.
    Or(Vec<Expr>),
    If(Box<[Expr; 3]>),
    /// Elements, each with whether it is left out when it has no value.
    List(Vec<(Expr, bool)>),
    /// Keys and values, each with whether it is left out when it has no value.
    Map(Vec<(Expr, Expr, bool)>),
    Fold(Box<Fold>),
}

/// A macro that goes over a list or a map.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fold {
    pub kind: FoldKind,
    pub range: Expr,
    /// The name of the element, or of its index or key where there is a second name.
    pub variable: String,
    pub second: Option<String>,
    /// What is asked of each element before anything is made of it.
    pub filter: Option<Expr>,
    pub body: Expr,
}

/// What becomes of the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoldKind {
    All,
    Exists,
    ExistsOne,
    /// `map` and `transformList`: the list of bodies.
    List,
    /// `filter`: the elements whose body holds.
    Filter,
    /// `transformMap`: the map of bodies under the same keys.
    Map,
    /// `transformMapEntry`: one map out of the bodies, which are maps.
    MapEntry,
    /// The elements in the order of their bodies.
    SortBy,
    /// `optMap`: the body of what is there, as an optional.
    OptionalMap,
    /// `optFlatMap`: the body of what is there, which is an optional.
    OptionalFlatMap,
}

impl Expr {
    /// The expressions right under this one.
    pub fn children(&self) -> Vec<&Expr> {
        match &self.node {
            Node::Literal(_) | Node::Ident(_) => Vec::new(),
            Node::Select { operand, .. } => vec![operand],
            Node::Call { target, args, .. } => target.iter().map(|target| &**target).chain(args).collect(),
            Node::And(all) | Node::Or(all) => all.iter().collect(),
            Node::If(parts) => parts.iter().collect(),
            Node::List(items) => items.iter().map(|(item, _)| item).collect(),
            Node::Map(entries) => entries.iter().flat_map(|(key, value, _)| [key, value]).collect(),
            Node::Fold(fold) => {
                [Some(&fold.range), fold.filter.as_ref(), Some(&fold.body)].into_iter().flatten().collect()
            }
        }
    }
}
