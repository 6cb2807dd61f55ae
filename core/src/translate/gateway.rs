//! `Gateway`: lets other clusters of the virtual mesh in.

use ferromesh_istio::Gateway;
use ferromesh_istio::gateway::{Port, Server, ServerTls, ServerTlsMode};

use crate::estate::AppliedGateway;

/// Passes connections on to the federated service that their SNI names.
pub(crate) fn render(gateway: &AppliedGateway, suffix: &str) -> Gateway {
    Gateway {
        selector: gateway.pod_labels.to_map(),
        servers: vec![Server {
            port: Port {
                number: gateway.container_port,
                protocol: "TLS".to_owned(),
                name: "tls".to_owned(),
            },
            hosts: vec![format!("*.{suffix}")],
            tls: Some(ServerTls {
                mode: ServerTlsMode::AutoPassthrough,
            }),
        }],
    }
}
