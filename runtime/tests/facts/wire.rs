//! Clients at the socket, and certificates for them to see.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    body::{Body, to_bytes},
    http::{Request, Response, StatusCode},
};
use ferromesh_runtime::tls::Credential;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

/// Nothing on loopback takes longer, unless it is never to happen.
pub(super) const SOON: Duration = Duration::from_secs(20);

pub(super) const LOOPBACK: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// A self-signed certificate and its key, in PEM.
pub(super) struct Pair {
    pub(super) chain: String,
    pub(super) key: String,
}

impl Pair {
    pub(super) fn new() -> Self {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        Self {
            chain: params.self_signed(&key).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }

    pub(super) fn credential(&self) -> Credential {
        Credential::from_pem(self.chain.as_bytes(), self.key.as_bytes()).unwrap()
    }
}

/// Takes any certificate: tests look at it themselves.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

pub(super) async fn tls(
    address: SocketAddr,
    protocol: &str,
) -> std::io::Result<TlsStream<TcpStream>> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let tcp = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, tcp)
        .await
}

/// A connection of HTTP/1.1 or HTTP/2.
pub(super) enum Connection {
    Http1(http1::SendRequest<Body>),
    Http2(http2::SendRequest<Body>),
}

impl Connection {
    pub(super) async fn plain(address: SocketAddr) -> Self {
        let tcp = TcpStream::connect(address).await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(tcp)).await.unwrap();
        tokio::spawn(connection);
        Self::Http1(sender)
    }

    /// Also returns the leaf that the server showed.
    pub(super) async fn http1(address: SocketAddr) -> (Self, CertificateDer<'static>) {
        let stream = tls(address, "http/1.1").await.unwrap();
        let leaf = leaf(&stream);
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        (Self::Http1(sender), leaf)
    }

    pub(super) async fn http2(address: SocketAddr) -> Self {
        let stream = tls(address, "h2").await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
        let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        Self::Http2(sender)
    }

    pub(super) async fn send(&mut self, request: Request<Body>) -> hyper::Result<Response<Body>> {
        let answer = match self {
            Self::Http1(sender) => sender.send_request(request).await,
            Self::Http2(sender) => sender.send_request(request).await,
        };
        answer.map(|response| response.map(Body::new))
    }

    pub(super) async fn get(&mut self, path: &str) -> Answer {
        let request = Request::get(format!("https://localhost{path}")).header("host", "localhost");
        let response = self
            .send(request.body(Body::empty()).unwrap())
            .await
            .unwrap();
        Answer::read(response).await
    }

    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }
}

fn leaf(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    let certificates = stream.get_ref().1.peer_certificates().unwrap();
    certificates[0].clone().into_owned()
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) text: String,
    pub(super) closes: bool,
    pub(super) content_type: Option<String>,
}

impl Answer {
    pub(super) async fn read(response: Response<Body>) -> Self {
        let (head, body) = response.into_parts();
        let text = to_bytes(body, usize::MAX).await.unwrap();
        let header = |name: &str| {
            let value = head.headers.get(name);
            value.map(|value| value.to_str().unwrap().to_owned())
        };
        Self {
            status: head.status,
            text: String::from_utf8(text.to_vec()).unwrap(),
            closes: header("connection").as_deref() == Some("close"),
            content_type: header("content-type"),
        }
    }
}

/// Sends a signal to this process.
pub(super) fn raise(signal: &str) {
    let pid = std::process::id().to_string();
    let status = std::process::Command::new("kill")
        .args(["-s", signal, &pid])
        .status()
        .unwrap();
    assert!(status.success());
}
