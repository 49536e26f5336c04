//! Response bodies: empty, bytes, or a stream that is produced while it is read.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use http_body::{Frame, SizeHint};

/// The body of an answer.
pub struct Body {
    content: Content,
    /// What lasts as long as the body.
    held: Vec<Box<dyn Send>>,
}

enum Content {
    Full(Option<Bytes>),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    /// A body that is there as a whole.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes: Bytes = bytes.into();
        Self { content: Content::Full((!bytes.is_empty()).then_some(bytes)), held: Vec::new() }
    }

    /// A body that is made while it is read.
    pub fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { content: Content::Stream(Box::pin(stream)), held: Vec::new() }
    }

    /// The same body, which keeps something until it has been read or given up.
    pub(crate) fn holding(mut self, held: impl Send + 'static) -> Self {
        self.held.push(Box::new(held));
        self
    }

    /// What is there as a whole; none of what is still to be made.
    pub(crate) fn whole(&self) -> Option<&Bytes> {
        match &self.content {
            Content::Full(bytes) => bytes.as_ref(),
            Content::Stream(_) => None,
        }
    }

    /// Whether it is made while it is read.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.content, Content::Stream(_))
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match &self.content {
            Content::Full(_) => "Body::Full",
            Content::Stream(_) => "Body::Stream",
        })
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().content {
            Content::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Content::Stream(stream) => {
                stream.as_mut().poll_next(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.content, Content::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Full(None) => SizeHint::with_exact(0),
            Content::Full(Some(bytes)) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}
