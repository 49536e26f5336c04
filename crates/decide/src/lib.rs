//! What should happen: one pure function per question, each answer with its reason.
