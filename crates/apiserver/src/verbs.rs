//! The verbs on resources: one file per verb, and what several of them share. Watches are in `watch`.

mod after_commit;
mod answer;
mod before_write;
mod computed;
mod continuation;
mod create;
mod definitions;
mod delete;
mod draft;
mod get;
mod list;
mod patch;
mod reviews;
mod scale;
mod selection;
mod shapes;
mod token;
mod update;

pub(crate) use answer::Answer;
pub(crate) use continuation::Continuation;
pub(crate) use delete::{FOREGROUND, ORPHAN};
pub(crate) use draft::{Draft, type_name};
pub(crate) use selection::Selection;
pub(crate) use shapes::include_object;
