//! Accepted connections: how many there may be, and how old they may become.

use std::{
    fmt, io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum_server::{AddrListener, Address};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, Sleep},
};

use super::Limits;

/// How often a connection that is too old is looked at again while it answers.
const RECHECK: Duration = Duration::from_secs(1);

/// One end of a connection, or of the listener.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    pub(super) address: SocketAddr,
    pub(super) limits: Limits,
    pub(super) activity: Arc<Activity>,
}

/// What a connection is doing.
#[derive(Debug)]
pub(super) struct Activity {
    born: Instant,
    in_flight: AtomicUsize,
}

/// A request is being answered as long as this exists.
pub(super) struct Busy(Arc<Activity>);

/// A listener that takes a connection only when there is room for it.
#[derive(Debug)]
pub(super) struct Listener {
    tcp: TcpListener,
    limits: Limits,
    room: Arc<Semaphore>,
}

/// A connection that ends by itself, as if its peer had closed it, when it is too old and does nothing.
pub(super) struct Stream {
    tcp: TcpStream,
    activity: Arc<Activity>,
    expiry: Pin<Box<Sleep>>,
    _room: OwnedSemaphorePermit,
}

// === impl Endpoint ===

impl Endpoint {
    pub(super) fn new(address: SocketAddr, limits: Limits) -> Self {
        let activity = Activity {
            born: Instant::now(),
            in_flight: AtomicUsize::new(0),
        };
        Self {
            address,
            limits,
            activity: Arc::new(activity),
        }
    }
}

impl Address for Endpoint {
    type Stream = Stream;
    type Listener = Listener;
}

// === impl Activity ===

impl Activity {
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }

    fn is_idle(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) == 0
    }
}

// === impl Busy ===

impl Busy {
    /// The age of the connection.
    pub(super) fn age(&self) -> Duration {
        self.0.born.elapsed()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl Listener ===

impl AddrListener<Stream, Endpoint> for Listener {
    async fn bind_to(endpoint: Endpoint) -> io::Result<Self> {
        Ok(Self {
            tcp: TcpListener::bind(endpoint.address).await?,
            limits: endpoint.limits,
            room: Arc::new(Semaphore::new(endpoint.limits.connections)),
        })
    }

    async fn accept_stream(&self) -> io::Result<(Stream, Endpoint)> {
        let room = Arc::clone(&self.room).acquire_owned().await;
        let room = room.map_err(io::Error::other)?;
        let (tcp, address) = self.tcp.accept().await?;
        tcp.set_nodelay(true)?;
        let endpoint = Endpoint::new(address, self.limits);
        let stream = Stream {
            tcp,
            activity: Arc::clone(&endpoint.activity),
            expiry: Box::pin(tokio::time::sleep(
                self.limits.max_age + self.limits.head_timeout,
            )),
            _room: room,
        };
        Ok((stream, endpoint))
    }

    fn get_local_addr(&self) -> io::Result<Endpoint> {
        Ok(Endpoint::new(self.tcp.local_addr()?, self.limits))
    }
}

// === impl Stream ===

impl Stream {
    /// Whether the connection is to end now. If not, it will be looked at again in time.
    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            std::task::ready!(self.expiry.as_mut().poll(cx));
            if self.activity.is_idle() {
                return Poll::Ready(());
            }
            self.expiry.as_mut().reset(Instant::now() + RECHECK);
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.tcp).poll_read(cx, buf) {
            // Nothing was put into the buffer: the end of the stream.
            Poll::Pending => self.poll_expired(cx).map(Ok),
            ready @ Poll::Ready(_) => ready,
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("activity", &self.activity)
            .finish_non_exhaustive()
    }
}
