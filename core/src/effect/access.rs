//! What an access policy does, and which doors a change opens or closes.

use super::{Remark, Weight, counted, selection};
use crate::delta::Delta;
use crate::key::Key;
use crate::model::access_policy::{Identities, IdentityMatcher};
use crate::model::virtual_mesh::GlobalAccess;
use crate::record::Record;
use crate::state::State;

pub(super) fn remarks(state: &State, key: &Key) -> Vec<Remark> {
    let Some(policy) = state.snapshot().access_policies.get(key) else {
        return Vec::new();
    };
    let mut remarks =
        selection::select(state, "spec.destinationSelector", &policy.destinations).remarks;
    if policy.sources.is_empty() {
        remarks.push(Remark::new(
            Weight::Reach,
            "spec.sourceSelector is empty: anybody may call, authenticated or not",
        ));
    }
    remarks.extend(
        policy
            .sources
            .iter()
            .enumerate()
            .filter_map(|(at, identities)| breadth(at, identities)),
    );
    remarks
}

impl Identities {
    /// Clusters that are named.
    pub(super) fn clusters(&self) -> impl Iterator<Item = &str> {
        let matched = self.matcher.iter().flat_map(|it| it.clusters.iter());
        let accounts = self.accounts.iter().map(|it| it.cluster.as_str());
        matched
            .map(AsRef::as_ref)
            .chain(accounts.filter(|cluster| !cluster.is_empty()))
    }
}

/// Where an alternative lets in more than it seems to.
fn breadth(at: usize, identities: &Identities) -> Option<Remark> {
    let field = format!("spec.sourceSelector[{at}]");
    let any =
        |matcher: &IdentityMatcher| matcher.namespaces.is_empty() && matcher.clusters.is_empty();
    let text = if identities.matcher.is_none() && identities.accounts.is_empty() {
        format!("{field} is empty: every authenticated caller may call")
    } else if identities.matcher.as_ref().is_some_and(any) {
        format!("{field}.kubeIdentityMatcher is empty: every authenticated caller may call")
    } else if let Some(nth) = identities
        .accounts
        .iter()
        .position(|account| account.namespace.is_empty())
    {
        let path = format!("{field}.kubeServiceAccountRefs.serviceAccounts[{nth}]");
        format!("{path} has no namespace: the whole trust domain may call")
    } else {
        return None;
    };
    Some(Remark::new(Weight::Reach, text))
}

/// Destinations at which a change begins or ends to ask who calls.
pub(super) fn doors(delta: &Delta) -> Vec<Remark> {
    let (mut closed, mut opened, mut sealed) = (0, 0, 0);
    for moved in delta.destinations.values() {
        let (Some(before), Some(after)) = (&moved.before, &moved.after) else {
            continue;
        };
        match (
            before.authorization.is_some(),
            after.authorization.is_some(),
            is_closed_by_default(after),
        ) {
            (false, true, false) => closed += 1,
            (true, false, false) => opened += 1,
            (true, false, true) => sealed += 1,
            (false, true, true) | (true, true, _) | (false, false, _) => {}
        }
    }
    [
        (closed, "refuse every call that no AccessPolicy allows, from now on"),
        (opened, "accept every call from now on: no AccessPolicy selects them any more"),
        (sealed, "refuse every call from now on: globalAccessPolicy is ENABLED and no AccessPolicy selects them"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| {
        Remark::new(
            Weight::Reach,
            format!("destinations that {what}: {count}"),
        )
    })
    .collect()
}

/// Whether its mesh denies what no access policy allows.
fn is_closed_by_default(record: &Record) -> bool {
    record
        .site
        .as_ref()
        .and_then(|site| site.membership.as_ref())
        .is_some_and(|membership| membership.virtual_mesh.global_access == GlobalAccess::Enabled)
}

/// What begins to refuse every call because its virtual mesh denies by default now.
pub(super) fn newly_sealed(delta: &Delta) -> Option<Remark> {
    let count = delta
        .destinations
        .values()
        .filter_map(|moved| Some((moved.before.as_ref()?, moved.after.as_ref()?)))
        .filter(|(before, after)| {
            after.authorization.is_none()
                && is_closed_by_default(after)
                && !is_closed_by_default(before)
        })
        .count();
    (count > 0).then(|| {
        Remark::new(
            Weight::Reach,
            format!(
                "globalAccessPolicy is ENABLED: {} without an AccessPolicy refuse every call",
                counted(count, "destination")
            ),
        )
    })
}
