//! What a person asks of a rollout: one annotation on the binding whose value says what, and is answered once.

use std::fmt;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// No further cluster starts.
    Pause,
    /// It goes on; what failed is judged anew.
    Resume,
    /// A stage may end; the current one if none is named.
    Approve {
        /// The stage.
        stage: Option<String>,
    },
    /// A cluster is not waited for.
    Skip {
        /// The cluster.
        cluster: String,
    },
    /// It ends here: clusters that have not started keep what they have.
    Abort,
}

/// A request: `ACTION [stage=NAME] [cluster=NAME] [revision=DIGEST] [id=ANYTHING]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What is asked for.
    pub action: Action,
    /// Only of this revision.
    pub revision: Option<String>,
    /// Makes a new value of what was asked before.
    pub id: String,
}

impl Request {
    /// Reads the annotation; none if it makes no sense.
    pub fn read(text: &str) -> Option<Request> {
        let mut words = text.split_whitespace();
        let action = words.next()?;
        let (mut stage, mut cluster, mut revision, mut id) = (None, None, None, String::new());
        for word in words {
            match word.split_once('=')? {
                ("stage", value) => stage = Some(value.to_owned()),
                ("cluster", value) => cluster = Some(value.to_owned()),
                ("revision", value) => revision = Some(value.to_owned()),
                ("id", value) => value.clone_into(&mut id),
                _ => return None,
            }
        }
        let action = match action {
            "pause" => Action::Pause,
            "resume" => Action::Resume,
            "approve" => Action::Approve { stage },
            "skip" => Action::Skip { cluster: cluster? },
            "abort" => Action::Abort,
            _ => return None,
        };
        Some(Request { action, revision, id })
    }
}

/// As it is written.
impl fmt::Display for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.action {
            Action::Pause => formatter.write_str("pause")?,
            Action::Resume => formatter.write_str("resume")?,
            Action::Approve { stage: None } => formatter.write_str("approve")?,
            Action::Approve { stage: Some(stage) } => write!(formatter, "approve stage={stage}")?,
            Action::Skip { cluster } => write!(formatter, "skip cluster={cluster}")?,
            Action::Abort => formatter.write_str("abort")?,
        }
        if let Some(revision) = &self.revision {
            write!(formatter, " revision={revision}")?;
        }
        write!(formatter, " id={}", self.id)
    }
}
