//! Traffic policies: how requests to destinations are routed.

mod expression;
mod matcher;
mod shift;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ferromesh_crds::{self as crds, traffic_policy as wire};
use ferromesh_istio::virtual_service::HttpMatch;

use super::duration;
use super::kubernetes::key;
use super::reject::{Code, Door, Rejection};
use super::selector::{Destinations, WorkloadMatcher, Workloads};
use crate::key::Key;

pub use shift::{ShiftTarget, Target};

/// A traffic policy.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficPolicy {
    /// Name and namespace.
    pub key: Key,
    /// Generation of the stored object.
    pub generation: i64,
    /// The spec as written, for the statuses that repeat it.
    pub spec: Arc<crds::TrafficPolicySpec>,
    /// Which callers are meant.
    pub sources: Workloads,
    /// Which destinations are meant.
    pub destinations: Destinations,
    /// Which requests are meant, alternatives; none means all.
    pub matchers: Arc<[HttpMatch]>,
    /// How many bytes they come to when they are written out.
    pub bytes_of_matchers: usize,
    /// What is done.
    pub actions: Actions,
    /// What is wrong with it; a policy with any is not applied.
    pub rejections: Arc<[Rejection]>,
}

/// What a policy does with requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Actions {
    /// Bound on a request.
    pub timeout: Option<Duration>,
    /// Tries after the first.
    pub retries: Option<Retries>,
    /// Faults on purpose.
    pub fault: Option<Fault>,
    /// Where requests go instead.
    pub shift: Option<Arc<[ShiftTarget]>>,
}

/// Tries after the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// How many; 0 turns retries off.
    pub attempts: i32,
    /// Bound on each.
    pub per_try_timeout: Option<Duration>,
}

/// A fault and the share of requests that meet it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// What happens.
    pub kind: FaultKind,
    /// To how many percent of requests.
    pub percentage: f64,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// It is held back.
    Delay(Duration),
    /// It is answered with a status.
    Abort(i32),
}

/// Most routes that one policy may ask for on one destination, before ports.
const MAX_ROUTES: usize = 1_000;

impl TrafficPolicy {
    /// Reads a policy; what is wrong with it is kept beside it.
    pub fn parse(object: &crds::TrafficPolicy) -> Self {
        let mut door = Door::default();
        let spec = &object.spec;
        let sources = Workloads::parse(&mut door, "spec.sourceSelector", &spec.source_selector);
        let destinations = Destinations::parse(
            &mut door,
            "spec.destinationSelector",
            &spec.destination_selector,
        );
        let matchers = matcher::parse(
            &mut door,
            "spec.httpRequestMatchers",
            &spec.http_request_matchers,
        );
        let callers: usize = sources.0.iter().map(WorkloadMatcher::alternatives).sum();
        let routes = callers.max(1).saturating_mul(matchers.len().max(1));
        door.limit("spec", routes, MAX_ROUTES);
        let actions = spec
            .policy
            .as_ref()
            .map(|policy| Actions::parse(&mut door, "spec.policy", policy))
            .unwrap_or_default();
        Self {
            key: key(&object.metadata, ""),
            generation: object.metadata.generation.unwrap_or_default(),
            spec: Arc::new(spec.clone()),
            sources,
            destinations,
            bytes_of_matchers: matcher::bytes(&matchers),
            matchers: matchers.into(),
            actions,
            rejections: door.close().into(),
        }
    }

    /// The services that the policy sends requests to, with the subset labels it asks for.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        self.actions
            .shift
            .iter()
            .flat_map(|shift| shift.iter())
            .map(|target| &target.target)
    }
}

impl Actions {
    fn parse(door: &mut Door, path: &str, policy: &wire::Policy) -> Self {
        door.not_supported(
            format_args!("{path}.corsPolicy"),
            policy.cors_policy.is_some(),
        );
        door.not_supported(format_args!("{path}.mirror"), policy.mirror.is_some());
        door.not_supported(
            format_args!("{path}.headerManipulation"),
            policy.header_manipulation.is_some(),
        );
        door.not_supported(
            format_args!("{path}.outlierDetection"),
            policy.outlier_detection.is_some(),
        );
        // An empty `mtls` sets nothing and is let through, as the compatible API does.
        door.not_supported(
            format_args!("{path}.mtls"),
            policy
                .mtls
                .as_ref()
                .is_some_and(|mtls| mtls.istio.is_some()),
        );
        door.not_supported(format_args!("{path}.csrf"), policy.csrf.is_some());
        door.not_supported(
            format_args!("{path}.rateLimit"),
            policy.rate_limit.is_some(),
        );
        Self {
            timeout: policy
                .request_timeout
                .as_ref()
                .filter(|text| !is_zero(text))
                .and_then(|text| time(door, format_args!("{path}.requestTimeout"), text)),
            retries: policy
                .retries
                .as_ref()
                .map(|retries| Retries::parse(door, format_args!("{path}.retries"), retries)),
            fault: policy
                .fault_injection
                .as_ref()
                .and_then(|fault| Fault::parse(door, format_args!("{path}.faultInjection"), fault)),
            shift: policy
                .traffic_shift
                .as_ref()
                .filter(|shift| !shift.destinations.is_empty())
                .map(|shift| shift::parse(door, format_args!("{path}.trafficShift"), shift)),
        }
    }
}

impl Retries {
    fn parse(door: &mut Door, path: fmt::Arguments<'_>, retries: &wire::Retries) -> Self {
        if retries.attempts < 0 {
            door.refuse(
                format_args!("{path}.attempts"),
                Code::Invalid,
                "is negative; use 0 to turn retries off, or a positive number",
            );
        }
        let per_try_timeout = retries
            .per_try_timeout
            .as_ref()
            .and_then(|text| time(door, format_args!("{path}.perTryTimeout"), text));
        if retries.attempts == 0 && per_try_timeout.is_some() {
            door.refuse(
                format_args!("{path}.perTryTimeout"),
                Code::Invalid,
                "needs attempts above 0: without attempts there is no try to bound (Istio refuses it)",
            );
        }
        Self {
            attempts: retries.attempts,
            per_try_timeout,
        }
    }
}

impl Fault {
    fn parse(
        door: &mut Door,
        path: fmt::Arguments<'_>,
        fault: &wire::FaultInjection,
    ) -> Option<Self> {
        // Left out means every request, as documented; Istio itself takes absence as none.
        let percentage = fault.percentage.unwrap_or(100.0);
        if !(0.0..=100.0).contains(&percentage) {
            door.refuse(
                format_args!("{path}.percentage"),
                Code::Invalid,
                format!("{percentage} is not a percentage; use a number from 0 to 100"),
            );
        }
        let kind = match (&fault.fixed_delay, &fault.abort) {
            (Some(_), Some(_)) => {
                door.refuse(
                    path,
                    Code::Invalid,
                    "fixedDelay and abort exclude each other; keep one, and write a second policy for the other",
                );
                return None;
            }
            (None, None) => {
                door.refuse(
                    path,
                    Code::Required,
                    "FaultInjection type must be specified: set fixedDelay or abort",
                );
                return None;
            }
            (Some(delay), None) => {
                FaultKind::Delay(time(door, format_args!("{path}.fixedDelay"), delay)?)
            }
            (None, Some(abort)) => {
                // Envoy: an abort's HTTP status is at least 200 and below 600.
                if !(200..600).contains(&abort.http_status) {
                    door.refuse(
                        format_args!("{path}.abort.httpStatus"),
                        Code::Invalid,
                        format!(
                            "{} is not a status that can be sent; use 200 to 599",
                            abort.http_status
                        ),
                    );
                }
                FaultKind::Abort(abort.http_status)
            }
        };
        Some(Self { kind, percentage })
    }
}

/// Whether a timeout says that there is none, as Istio has it by itself.
fn is_zero(timeout: &str) -> bool {
    duration::parse(timeout) == Ok(Duration::ZERO)
}

/// Reads a duration field. Istio takes none below a millisecond, nor a finer one.
fn time(door: &mut Door, path: fmt::Arguments<'_>, text: &str) -> Option<Duration> {
    match duration::parse(text) {
        Ok(duration)
            if !duration.is_zero() && duration.subsec_nanos().is_multiple_of(1_000_000) =>
        {
            Some(duration)
        }
        Ok(_) => {
            let message =
                format!("`{text}` is too fine for Istio; use whole milliseconds, at least 1ms");
            door.refuse(path, Code::Invalid, message);
            None
        }
        Err(message) => {
            door.refuse(path, Code::Invalid, message);
            None
        }
    }
}
