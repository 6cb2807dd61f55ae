//! Fault injection.

use ferromesh_istio::virtual_service::{Abort, Delay, HttpFaultInjection, Percent};

use crate::model::duration;
use crate::model::traffic_policy::{Fault, FaultKind};

/// The fault as Istio has it. The share is always written: absent, Istio injects nothing.
pub(crate) fn render(fault: &Fault) -> HttpFaultInjection {
    let percentage = Percent {
        value: fault.percentage,
    };
    match fault.kind {
        FaultKind::Delay(delay) => HttpFaultInjection {
            delay: Some(Delay {
                fixed_delay: duration::print(delay),
                percentage,
            }),
            abort: None,
        },
        FaultKind::Abort(http_status) => HttpFaultInjection {
            delay: None,
            abort: Some(Abort {
                http_status,
                percentage,
            }),
        },
    }
}
