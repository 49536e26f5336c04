//! Confirmation of a command: shows its plan, asks, and exceeds a change budget only if the user allowed it. Decides
//! nothing about templates.

use anyhow::Result;
use api::records::APPROVED_PLAN;
use serde_json::{Value, json};

use crate::Hint;
use crate::output;
use crate::plan::{Planned, shown};
use crate::terminal_text::Paint;

/// Options of every command that acts on many templates at once.
#[derive(clap::Args)]
pub struct ConfirmationFlags {
    /// Make the change without asking for confirmation
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Show the plan and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Make the change even if it exceeds a change budget: approves exactly the plan that is shown
    #[arg(long)]
    pub approve: bool,
}

/// What the user wants after having seen the plan.
pub enum Confirmation {
    /// Nothing is changed.
    DryRun,
    /// It is done; beyond a budget with this approval.
    Confirmed(Option<String>),
}

impl ConfirmationFlags {
    /// Shows what would happen on stderr, and asks where anything would.
    pub fn to(&self, question: &str, planned: &Planned) -> Result<Confirmation> {
        output::print_message(shown(&planned.plan, &planned.notes(), false, Paint::of_stderr()).trim_end());
        self.answer(question, planned)
    }

    /// The same where what would happen was shown already.
    pub fn answer(&self, question: &str, planned: &Planned) -> Result<Confirmation> {
        if self.dry_run {
            return Ok(Confirmation::DryRun);
        }
        let approval = self.approval(planned)?;
        if !planned.plan.is_empty() && !output::confirm(question, self.yes)? {
            return Err(anyhow::anyhow!("nothing was changed"));
        }
        Ok(Confirmation::Confirmed(approval))
    }

    /// The approval that goes along; an error where one is needed and not given.
    fn approval(&self, planned: &Planned) -> Result<Option<String>> {
        let Some(beyond) = planned.beyond.first() else { return Ok(None) };
        let refused = |hint: &str| {
            let why = format!("the change exceeds its budget: {}", beyond.why);
            Err(anyhow::Error::new(Hint(hint.to_owned())).context(why))
        };
        match (self.approve, planned.approval.as_deref() == Some(beyond.plan.as_str())) {
            (false, _) => {
                refused("nothing was changed; to make exactly the change that is shown, add --approve")
            }
            (true, false) => refused("the plan has changed in the meantime; run the command again"),
            (true, true) => Ok(Some(beyond.plan.clone())),
        }
    }
}

/// What a request says in addition so that it carries an approval.
pub fn approving(approval: Option<&str>) -> Value {
    match approval {
        Some(digest) => json!({ "metadata": { "annotations": { APPROVED_PLAN: digest } } }),
        None => json!({}),
    }
}
