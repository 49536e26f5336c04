//! Panics as values. Where they happened is printed by the panic hook of the process.

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;

/// What a panic said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panic {
    message: String,
}

impl Panic {
    /// Reads what `catch_unwind` or a `JoinError` hands out.
    pub fn of(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Self { message: text.unwrap_or_else(|| "a panic without a message".to_owned()) }
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

/// Awaits a future and catches its panic. The caller sees to it that what the future shares with others is still good:
/// locks are recovered ([`crate::Recovered`]), and whatever was half done is done anew.
pub async fn catch<T>(future: impl Future<Output = T>) -> Result<T, Panic> {
    AssertUnwindSafe(future).catch_unwind().await.map_err(|payload| Panic::of(&*payload))
}

/// Calls a function and catches its panic; see [`catch`].
pub fn catch_call<T>(call: impl FnOnce() -> T) -> Result<T, Panic> {
    std::panic::catch_unwind(AssertUnwindSafe(call)).map_err(|payload| Panic::of(&*payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_answer() {
        let said = |result: Result<u8, Panic>| result.expect_err("it panicked").to_string();
        assert_eq!(said(catch(async { panic!("one") }).await), "one");
        assert_eq!(said(catch(async { panic!("two {}", 2) }).await), "two 2");
        assert_eq!(said(catch_call(|| panic!("three"))), "three");
        assert_eq!(said(catch_call(|| std::panic::panic_any(7))), "a panic without a message");
        assert_eq!((catch(async { 1 }).await, catch_call(|| 2)), (Ok(1), Ok(2)));
    }
}
