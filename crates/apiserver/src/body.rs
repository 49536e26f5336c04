//! The body of an answer: nothing, bytes, or a stream that is made while it is read.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use http_body::{Frame, SizeHint};

/// The body of an answer.
pub struct Body(Content);

enum Content {
    Full(Option<Bytes>),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    /// A body that is there as a whole.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes: Bytes = bytes.into();
        Self(Content::Full((!bytes.is_empty()).then_some(bytes)))
    }

    /// A body that is made while it is read.
    pub fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Content::Stream(Box::pin(stream)))
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match &self.0 {
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
        match &mut self.get_mut().0 {
            Content::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Content::Stream(stream) => {
                stream.as_mut().poll_next(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Content::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Full(None) => SizeHint::with_exact(0),
            Content::Full(Some(bytes)) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}
