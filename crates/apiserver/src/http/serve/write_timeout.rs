//! A write timeout: closes a connection whose client stopped reading, or whose network is gone without a FIN or RST.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A stream whose writes must make progress.
pub(super) struct WriteTimeout<Stream> {
    stream: Stream,
    timeout: Duration,
    /// The timer, armed while a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<Stream> WriteTimeout<Stream> {
    /// Sets the timeout of each write.
    pub fn new(stream: Stream, timeout: Duration) -> Self {
        Self { stream, timeout, waiting: None }
    }

    fn watch<Answer>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<Answer>>,
    ) -> Poll<io::Result<Answer>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let timeout = self.timeout;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(timeout)));
        if waiting.deadline() <= Instant::now() || waiting.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}

impl<Stream: AsyncRead + Unpin> AsyncRead for WriteTimeout<Stream> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<Stream: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<Stream> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch(context, shut)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_times_out_when_its_client_stops_reading() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut ours = WriteTimeout::new(ours, Duration::from_secs(60));
        let reader = tokio::spawn(async move {
            let mut part = [0; 16];
            for _ in 0..4 {
                tokio::time::sleep(Duration::from_secs(50)).await;
                theirs.read_exact(&mut part).await.expect("more to read");
            }
            theirs
        });
        ours.write_all(&[0; 64]).await.expect("fifty seconds are not too long");
        let _unread = reader.await.expect("the reader");
        let error = ours.write_all(&[0; 64]).await.expect_err("the client does not read");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
