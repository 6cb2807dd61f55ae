//! How far a selector reaches.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Remark, Weight, counted, plural};
use crate::model::Destination;
use crate::model::selector::Destinations;
use crate::state::State;

/// What a policy selects.
pub(super) struct Selection<'a> {
    /// The destinations, in key order.
    pub(super) destinations: Vec<&'a Arc<Destination>>,
    /// What is to be said about them.
    pub(super) remarks: Vec<Remark>,
}

/// Selects, and says how far that reaches. `field` is where the selectors are written.
pub(super) fn select<'a>(state: &'a State, field: &str, selection: &Destinations) -> Selection<'a> {
    let table = state.destinations();
    let destinations = state.graph.destination_index.select(selection, table);
    let mut remarks = Vec::new();
    let clusters: BTreeSet<&str> = destinations
        .iter()
        .filter_map(|destination| destination.service.as_ref())
        .map(|service| service.reference.cluster())
        .collect();
    let reach = format!(
        "selects {} of {} on {}",
        destinations.len(),
        counted(table.len(), "destination"),
        counted(clusters.len(), "cluster")
    );
    remarks.push(match (selection, destinations.len()) {
        (Destinations::All, _) => Remark::new(Weight::Reach, format!("{field} is empty: {reach}")),
        (Destinations::Selected(_), 0) => Remark::new(
            Weight::Reach,
            format!("{reach}: no effect until one matches"),
        ),
        (Destinations::Selected(selectors), _) => {
            let boundless = selectors.iter().position(|selector| {
                selector.matcher.as_ref().is_some_and(|matcher| {
                    matcher.labels.is_empty()
                        && matcher.namespaces.is_empty()
                        && matcher.clusters.is_empty()
                })
            });
            match boundless {
                Some(at) => Remark::new(
                    Weight::Reach,
                    format!("{field}[{at}].kubeServiceMatcher is empty: {reach}"),
                ),
                None => Remark::new(Weight::Outcome, reach),
            }
        }
    });
    if let Destinations::Selected(selectors) = selection {
        let idle = selectors
            .iter()
            .position(|selector| selector.matcher.is_none() && selector.services.is_empty());
        if let Some(at) = idle {
            remarks.push(Remark::new(
                Weight::Reach,
                format!("{field}[{at}] is empty and selects nothing"),
            ));
        }
    }
    let outside = state
        .records_of(&destinations)
        .filter(|record| record.service().is_none())
        .count();
    if outside > 0 {
        let belong = if outside == 1 { "belongs" } else { "belong" };
        remarks.push(Remark::new(
            Weight::Hint,
            format!(
                "{outside} of the selected {} {belong} to no Istio mesh: nothing is written for {}",
                plural(destinations.len(), "destination"),
                if outside == 1 { "it" } else { "them" }
            ),
        ));
    }
    Selection {
        destinations,
        remarks,
    }
}
