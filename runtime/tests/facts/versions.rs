use std::net::SocketAddr;

use axum::{Router, routing::get};
use ferromesh_runtime::{
    serve::{Drain, Limits, Server},
    tls::ServedCredential,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::wire::{LOOPBACK, Pair, SOON};

/// RFC 5246, 7.2: the alerts `handshake_failure` and `protocol_version`.
const HANDSHAKE_FAILURE: u8 = 40;
const PROTOCOL_VERSION: u8 = 70;

/// The first words of a client that speaks no TLS after version 1.`minor` (RFC 5246, 7.4.1.2; version 1.1
/// says 3.2 there), with suites that every version up to 1.2 knows and this server does not.
fn hello(minor: u8) -> Vec<u8> {
    let suites = [0xc0, 0x13, 0xc0, 0x09, 0x00, 0x2f];
    // Curves and points, and with what may be signed: without these a server may look no further.
    let curves = [0x00, 0x0a, 0, 4, 0, 2, 0x00, 0x17];
    let points = [0x00, 0x0b, 0, 2, 1, 0];
    let signatures = [0x00, 0x0d, 0, 4, 0, 2, 0x04, 0x03];
    let extensions = [&curves[..], &points, &signatures].concat();
    let length = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap();
    let mut body = vec![3, minor + 1];
    body.extend([7; 32]);
    body.extend([0, 0, length(&suites)]);
    body.extend(suites);
    body.extend([1, 0, 0, length(&extensions)]);
    body.extend(extensions);
    let handshake = [&[1, 0, 0, length(&body)][..], &body].concat();
    [&[22, 3, 1, 0, length(&handshake)][..], &handshake].concat()
}

/// The alert that the server ends such a handshake with.
async fn alert(address: SocketAddr, minor: u8) -> u8 {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&hello(minor)).await.unwrap();
    let mut answer = [0; 7];
    let read = stream.read_exact(&mut answer);
    timeout(SOON, read).await.expect("in time").unwrap();
    let [sort, _, _, 0, 2, fatal, alert] = answer else {
        panic!("is no alert: {answer:?}");
    };
    assert_eq!((sort, fatal), (21, 2), "is no fatal alert");
    alert
}

#[tokio::test]
async fn a_client_that_speaks_nothing_newer_than_tls_1_1_is_refused_for_its_version() {
    let credential = ServedCredential::new();
    credential.replace(Pair::new().credential());
    let server = Server::bind(LOOPBACK, Limits::default()).await.unwrap();
    let address = server.address();
    let app = Router::new().route("/", get(async || "hello"));
    tokio::spawn(async move {
        let cancel = CancellationToken::new();
        server
            .https(app, &credential, Drain::default(), cancel)
            .await
    });
    for minor in [0, 1] {
        assert_eq!(
            alert(address, minor).await,
            PROTOCOL_VERSION,
            "TLS 1.{minor}"
        );
    }
    // The same words of version 1.2 fail for another reason: no suite is left that both know.
    assert_eq!(alert(address, 2).await, HANDSHAKE_FAILURE);
}
