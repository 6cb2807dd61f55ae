//! `DestinationRule`: TLS, subsets and keepalive of one host.

use ferromesh_istio::DestinationRule;
use ferromesh_istio::destination_rule::{
    ClientTls, ClientTlsMode, ConnectionPool, Subset, TcpKeepalive, TcpSettings, TrafficPolicy,
};

use crate::model::duration;
use crate::model::virtual_mesh::Keepalive;
use crate::record::Subsets;

/// Renders the rule of one host; without a TLS mode, Istio finds out by itself what each endpoint
/// can do.
pub(crate) fn render(
    host: &str,
    tls_mode: Option<ClientTlsMode>,
    keepalive: Option<&Keepalive>,
    subsets: &Subsets,
) -> DestinationRule {
    DestinationRule {
        host: host.to_owned(),
        traffic_policy: (tls_mode.is_some() || keepalive.is_some()).then(|| TrafficPolicy {
            tls: tls_mode.map(|mode| ClientTls { mode }),
            connection_pool: keepalive.map(|keepalive| ConnectionPool {
                tcp: Some(TcpSettings {
                    tcp_keepalive: Some(TcpKeepalive {
                        probes: keepalive.probes,
                        time: keepalive.time.map(duration::print),
                        interval: keepalive.interval.map(duration::print),
                    }),
                }),
            }),
        }),
        subsets: subsets
            .by_name()
            .map(|(name, labels)| Subset {
                name: name.to_owned(),
                labels: labels.to_map(),
            })
            .collect(),
    }
}
