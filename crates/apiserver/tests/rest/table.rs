//! Many requests and what a server says to each: the answers lie in a file beside the tests, written down
//! from a real kube-apiserver.

use std::fmt::Write as _;

use expect_test::ExpectFile;
use serde_json::Value;

use crate::client::{Answer, Ask, Server};

/// Requests and answers so far.
pub struct Table<'a> {
    server: &'a Server,
    written: String,
    guarded: Option<(&'a str, Value)>,
}

impl<'a> Table<'a> {
    pub fn new(server: &'a Server) -> Self {
        Self { server, written: String::new(), guarded: None }
    }

    /// Before each request this object is as given, and a refusal leaves it like that.
    pub fn guarding(self, collection: &'a str, object: Value) -> Self {
        Self { guarded: Some((collection, object)), ..self }
    }

    /// Asks and writes down the answer.
    pub async fn ask(&mut self, ask: Ask) {
        let before = match &self.guarded {
            Some((collection, object)) => Some(self.server.renew(collection, object.clone()).await),
            None => None,
        };
        let heading = ask.heading();
        let answer = self.server.ask(ask).await;
        self.check_guarded(before.as_ref(), &answer).await;
        writeln!(self.written, "{heading}\n{}\n", answer.described()).expect("memory can be written");
    }

    async fn check_guarded(&self, before: Option<&Value>, answer: &Answer) {
        let Some(((collection, object), before)) = self.guarded.as_ref().zip(before) else { return };
        let name = object["metadata"]["name"].as_str().expect("a name");
        let after = self.server.ask(Ask::get(&format!("{collection}/{name}"))).await.expect(200);
        assert!(answer.code < 400 || *before == after, "what is refused changes nothing: {answer:?}");
    }

    /// All of it has to be what the file says.
    pub fn is(self, expected: ExpectFile) {
        expected.assert_eq(self.written.trim_start());
    }
}
