use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::ConnectInfo, http::Request, routing::get};
use ferromesh_runtime::{
    serve::{Drain, Drained, Error, Limits, Server},
    tls::ServedCredential,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Semaphore,
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::wire::{Answer, Connection, LOOPBACK, Pair, SOON, tls};

const NO_LAME_DUCK: Drain = Drain {
    lame_duck: Duration::ZERO,
    deadline: SOON,
};

struct Running {
    address: SocketAddr,
    credential: ServedCredential,
    /// Requests of `/slow` that have begun.
    begun: Arc<Semaphore>,
    /// Lets requests of `/slow` finish.
    finish: Arc<Semaphore>,
    cancel: CancellationToken,
    task: JoinHandle<Result<Drained, Error>>,
}

async fn running(limits: Limits, drain: Drain) -> Running {
    running_with(limits, drain, true).await
}

async fn running_with(limits: Limits, drain: Drain, is_tls: bool) -> Running {
    let (begun, finish) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let slow = {
        let (begun, finish) = (Arc::clone(&begun), Arc::clone(&finish));
        async move || {
            begun.add_permits(1);
            finish.acquire().await.unwrap().forget();
            "slow answer"
        }
    };
    let who = async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.to_string();
    let app = Router::new()
        .route("/", get(async || "hello"))
        .route("/slow", get(slow))
        .route("/who", get(who));
    let credential = ServedCredential::new();
    credential.replace(Pair::new().credential());
    let server = Server::bind(LOOPBACK, limits).await.unwrap();
    let address = server.address();
    let cancel = CancellationToken::new();
    let task = tokio::spawn({
        let (credential, cancel) = (credential.clone(), cancel.clone());
        async move {
            if is_tls {
                server.https(app, &credential, drain, cancel).await
            } else {
                server.http(app, drain, cancel).await
            }
        }
    });
    Running {
        address,
        credential,
        begun,
        finish,
        cancel,
        task,
    }
}

impl Running {
    /// A request of `/slow` that the handler is working at.
    async fn slow_request(&self, mut connection: Connection) -> JoinHandle<hyper::Result<Answer>> {
        let request = tokio::spawn(async move {
            let request = Request::get("https://localhost/slow").header("host", "localhost");
            let response = connection
                .send(request.body(Body::empty()).unwrap())
                .await?;
            Ok(Answer::read(response).await)
        });
        self.begun.acquire().await.unwrap().forget();
        request
    }

    async fn ended(self) -> Drained {
        timeout(SOON, self.task)
            .await
            .expect("in time")
            .unwrap()
            .unwrap()
    }
}

#[tokio::test]
async fn speaks_http1_and_http2_over_tls_and_tells_who_asks() {
    let server = running(Limits::default(), Drain::default()).await;
    let (mut http1, _) = Connection::http1(server.address).await;
    let answer = http1.get("/").await;
    assert_eq!(answer.text, "hello");
    assert!(!answer.closes);
    assert!(http1.get("/who").await.text.starts_with("127.0.0.1:"));
    let mut http2 = Connection::http2(server.address).await;
    assert_eq!(http2.get("/").await.text, "hello");
    assert!(http2.get("/who").await.text.starts_with("127.0.0.1:"));
}

#[tokio::test]
async fn draining_answers_requests_in_flight_and_then_stops() {
    let server = running(Limits::default(), NO_LAME_DUCK).await;
    let (http1, _) = Connection::http1(server.address).await;
    let http2 = Connection::http2(server.address).await;
    let (mut idle, _) = Connection::http1(server.address).await;
    idle.get("/").await;
    let in_flight = [
        server.slow_request(http1).await,
        server.slow_request(http2).await,
    ];

    server.cancel.cancel();
    let until_closed = async {
        while !idle.is_closed() || TcpStream::connect(server.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, until_closed)
        .await
        .expect("idle connections and the listener are closed");
    assert!(!server.task.is_finished());

    server.finish.add_permits(2);
    for request in in_flight {
        assert_eq!(request.await.unwrap().unwrap().text, "slow answer");
    }
    assert_eq!(server.ended().await, Drained { cut: 0 });
}

#[tokio::test]
async fn requests_that_outlast_the_deadline_are_cut() {
    let drain = Drain {
        lame_duck: Duration::ZERO,
        deadline: Duration::from_millis(50),
    };
    let server = running(Limits::default(), drain).await;
    let (connection, _) = Connection::http1(server.address).await;
    let request = server.slow_request(connection).await;
    server.cancel.cancel();
    assert!(request.await.unwrap().is_err());
    assert_eq!(server.ended().await, Drained { cut: 1 });
}

#[tokio::test]
async fn a_lame_duck_takes_new_connections_and_sends_clients_away() {
    let drain = Drain {
        lame_duck: Duration::from_hours(1),
        deadline: SOON,
    };
    let server = running(Limits::default(), drain).await;
    let (mut early, _) = Connection::http1(server.address).await;
    assert!(!early.get("/").await.closes);
    server.cancel.cancel();
    assert!(early.get("/").await.closes);
    let (mut late, _) = Connection::http1(server.address).await;
    let answer = late.get("/").await;
    assert_eq!(answer.text, "hello");
    assert!(answer.closes);
    server.task.abort();
}

#[tokio::test]
async fn an_old_connection_is_closed_with_its_next_answer() {
    let limits = Limits {
        max_age: Duration::ZERO,
        ..Limits::default()
    };
    let server = running(limits, Drain::default()).await;
    let (mut connection, _) = Connection::http1(server.address).await;
    assert!(connection.get("/").await.closes);
}

#[tokio::test]
async fn an_old_connection_that_does_nothing_is_closed() {
    let limits = Limits {
        max_age: Duration::ZERO,
        head_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = running(limits, Drain::default()).await;

    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let closed = timeout(SOON, silent.read(&mut [0; 16]))
        .await
        .expect("in time");
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");

    let mut http2 = Connection::http2(server.address).await;
    assert_eq!(http2.get("/").await.text, "hello");
    let until_closed = async {
        while !http2.is_closed() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, until_closed)
        .await
        .expect("idle HTTP/2 connections are closed");
}

#[tokio::test]
async fn an_old_connection_that_answers_is_left_until_it_has() {
    let limits = Limits {
        max_age: Duration::ZERO,
        head_timeout: Duration::from_millis(20),
        ..Limits::default()
    };
    let server = running(limits, Drain::default()).await;
    let request = server
        .slow_request(Connection::http2(server.address).await)
        .await;
    let silent = TcpStream::connect(server.address).await.unwrap();
    // By the time that this one has been closed, the other is too old as well.
    let mut silent = silent;
    assert!(timeout(SOON, silent.read(&mut [0; 16])).await.is_ok());
    server.finish.add_permits(1);
    assert_eq!(request.await.unwrap().unwrap().text, "slow answer");
}

#[tokio::test]
async fn a_head_that_comes_too_slowly_ends_the_connection() {
    let limits = Limits {
        head_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = running_with(limits, Drain::default(), false).await;
    let mut tcp = TcpStream::connect(server.address).await.unwrap();
    tcp.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow")
        .await
        .unwrap();
    let mut rest = Vec::new();
    let read = timeout(SOON, tcp.read_to_end(&mut rest))
        .await
        .expect("in time");
    assert!(
        read.is_err() || !rest.starts_with(b"HTTP/1.1 200"),
        "{rest:?}"
    );
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_answered_with_503() {
    let limits = Limits {
        request_timeout: Some(Duration::from_millis(50)),
        ..Limits::default()
    };
    let server = running(limits, Drain::default()).await;
    let (mut connection, _) = Connection::http1(server.address).await;
    assert_eq!(connection.get("/slow").await.status, 503);
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_their_turn() {
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let server = running(limits, Drain::default()).await;
    let (mut first, _) = Connection::http1(server.address).await;
    first.get("/").await;
    let address = server.address;
    let second = tokio::spawn(async move { Connection::http1(address).await.0.get("/").await });
    for _ in 0..50 {
        first.get("/").await;
    }
    assert!(!second.is_finished());
    drop(first);
    assert_eq!(timeout(SOON, second).await.unwrap().unwrap().text, "hello");
}

#[tokio::test]
async fn a_new_credential_is_shown_to_new_connections_and_old_ones_go_on() {
    let server = running(Limits::default(), Drain::default()).await;
    let (old, new) = (Pair::new(), Pair::new());
    assert!(server.credential.replace(old.credential()));
    let (mut before, shown) = Connection::http1(server.address).await;
    assert_eq!(shown, old.credential().chain()[0]);

    assert!(
        !server.credential.replace(old.credential()),
        "equal content changes nothing"
    );
    assert!(server.credential.replace(new.credential()));
    let (mut after, shown) = Connection::http1(server.address).await;
    assert_eq!(shown, new.credential().chain()[0]);
    assert_eq!(before.get("/").await.text, "hello");
    assert_eq!(after.get("/").await.text, "hello");
}

#[tokio::test]
async fn without_a_credential_handshakes_fail_until_there_is_one() {
    let server = Server::bind(LOOPBACK, Limits::default()).await.unwrap();
    let address = server.address();
    let credential = ServedCredential::new();
    let serving = {
        let credential = credential.clone();
        let app = Router::new().route("/", get(async || "hello"));
        async move {
            server
                .https(app, &credential, Drain::default(), CancellationToken::new())
                .await
        }
    };
    tokio::spawn(serving);
    assert!(tls(address, "http/1.1").await.is_err());
    credential.replace(Pair::new().credential());
    assert!(tls(address, "http/1.1").await.is_ok());
}

#[tokio::test]
async fn an_address_in_use_is_an_error_that_names_it() {
    let first = Server::bind(LOOPBACK, Limits::default()).await.unwrap();
    let address = first.address();
    let error = Server::bind(address, Limits::default()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("listening on {address}"));
}
