// SPDX-License-Identifier: Apache-2.0
//
// The process's own stdout and stderr as guest streams, without a buffer of their own: what a guest writes is out at once,
// in order with what the runtime itself prints, also when its last line has no newline. The last of its stderr is kept: what a
// language's run time says before it traps is the cause of the trap.

use bytes::Bytes;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

/// The last bytes a guest wrote, from the beginning of a line on.
#[derive(Clone, Default)]
pub struct LastWords(Arc<Mutex<Vec<u8>>>);

impl LastWords {
    const KEPT: usize = 2000;

    fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap();
        kept.extend_from_slice(&bytes[bytes.len().saturating_sub(2 * Self::KEPT)..]);
        if kept.len() > 2 * Self::KEPT {
            let early = kept.len() - Self::KEPT;
            kept.drain(..early);
        }
    }

    /// What was written since the last call.
    pub fn take(&self) -> String {
        let kept = std::mem::take(&mut *self.0.lock().unwrap());
        let late = String::from_utf8_lossy(&kept[kept.len().saturating_sub(Self::KEPT)..]);
        let late = late.trim();
        match late.split_once('\n') {
            Some((_, lines)) if kept.len() >= Self::KEPT => lines.to_string(),
            _ => late.to_string(),
        }
    }
}

#[derive(Clone)]
pub struct Stdio {
    fd: i32,
    kept: Option<LastWords>,
}

impl Stdio {
    pub const OUT: Stdio = Stdio { fd: 1, kept: None };

    pub fn err(kept: LastWords) -> Stdio {
        Stdio {
            fd: 2,
            kept: Some(kept),
        }
    }

    fn file(&self) -> ManuallyDrop<File> {
        ManuallyDrop::new(unsafe { File::from_raw_fd(self.fd) })
    }

    fn write_whole(&self, mut bytes: &[u8]) -> io::Result<()> {
        if let Some(kept) = &self.kept {
            kept.add(bytes);
        }
        while !bytes.is_empty() {
            match self.file().write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => bytes = &bytes[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // The descriptor was made non-blocking by whoever shares it.
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(std::time::Duration::from_millis(1))
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

impl IsTerminal for Stdio {
    fn is_terminal(&self) -> bool {
        self.file().is_terminal()
    }
}

impl StdoutStream for Stdio {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl Pollable for Stdio {
    async fn ready(&mut self) {}
}

impl OutputStream for Stdio {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.write_whole(&bytes).map_err(|e| match e.kind() {
            io::ErrorKind::BrokenPipe => StreamError::Closed,
            _ => StreamError::LastOperationFailed(e.into()),
        })
    }
    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }
    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(64 * 1024)
    }
}

impl AsyncWrite for Stdio {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, b: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.write_whole(b).map(|()| b.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
