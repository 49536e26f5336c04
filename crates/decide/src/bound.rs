//! A template's own binding with the pin that says from which state of template and policy it was made.

use api::Binding;
use api::records::Pin;

use crate::template::Template;

/// A template's own binding with its pin read.
#[derive(Debug, Clone)]
pub struct Bound<'b> {
    /// The binding.
    pub binding: &'b Binding,
    /// What it was made from; none if Karmada made it.
    pub pin: Option<Pin>,
}

impl<'b> Bound<'b> {
    /// Reads the pin.
    pub fn of(binding: &'b Binding) -> Bound<'b> {
        Bound { binding, pin: Pin::read(&binding.metadata) }
    }

    /// True when it was made from the template as it is now.
    pub fn is_of(&self, template: &Template) -> bool {
        self.pin.as_ref().is_some_and(|pin| pin.template == template.digest)
    }
}
