//! What is new and what was there before, what is not worked out, and how it is told.

use ferromesh_core::review::{Candidate, Intent, Review, Weight};

use crate::world::*;

// What was there before.

#[test]
fn an_error_that_was_listed_elsewhere_is_not_new() {
    let spec = |selector: &str, timeout: &str| {
        format!("{{destinationSelector: {selector}, policy: {{requestTimeout: {timeout}}}}}")
    };
    let state = with(estate(), &traffic_policy("a", &spec(REVIEWS, "1s")));
    // Stored while nobody was there to refuse it: it loses on both.
    let wide = traffic_policy("b", &spec(REVIEWS, "2s"));
    let narrow = traffic_policy("b", &spec(REVIEWS_2, "2s"));
    assert_eq!(update(&with(state, &wide), &wide, &narrow).denials, []);
}

#[test]
fn an_error_on_a_further_destination_is_new() {
    let spec = |selector: &str, timeout: &str| {
        format!("{{destinationSelector: {selector}, policy: {{requestTimeout: {timeout}}}}}")
    };
    let state = with(estate(), &traffic_policy("a", &spec(REVIEWS, "1s")));
    let before = traffic_policy("b", &spec(REVIEWS_1, "2s"));
    let after = traffic_policy("b", &spec(REVIEWS_2, "2s"));
    let outcome = update(&with(state, &before), &before, &after);
    assert_eq!(outcome.denials.len(), 1);
}

// What is not worked out.

#[test]
fn a_review_that_is_not_finished_says_what_is_proven_and_that_there_is_more() {
    let (kind, object) = read(&traffic_policy("a", MISSING));
    let candidate = Candidate::new(kind, Intent::Create(object)).unwrap();
    let mut review = Review::new(&estate(), candidate.clone());
    assert!(!review.advance(1), "there is nothing of that name");
    let outcome = review.finish();
    assert!(outcome.is_allowed() && !outcome.is_complete);
    assert_eq!(
        outcome.warnings().join(" "),
        "there was no time to work out whether this fits other objects, and what it changes; see its status"
    );

    let mut review = Review::new(&estate(), candidate);
    assert!(!review.advance(1));
    assert!(!review.advance(1), "its references are looked up");
    let outcome = review.finish();
    assert_eq!(outcome.denials.len(), 1);
    assert_eq!(outcome.remarks, []);
}

// How it is told.

#[test]
fn of_what_a_refused_change_would_do_nothing_is_said() {
    let mut spec = MISSING.replace("policy:", "destinationSelectors: [], policy:");
    let outcome = creation(&estate(), &traffic_policy("a", &spec));
    let weights: Vec<_> = outcome.remarks.iter().map(|it| it.weight).collect();
    assert_eq!(
        (outcome.denials.len(), &*weights),
        (1, &[Weight::Dropped][..])
    );

    spec = spec.replace("gone", "reviews");
    let outcome = creation(&estate(), &traffic_policy("a", &spec));
    assert_eq!(outcome.remarks[0].weight, Weight::Dropped);
    assert!(
        outcome
            .remarks
            .iter()
            .any(|it| it.weight == Weight::Outcome)
    );
}

#[test]
fn advice_is_given_once() {
    let selector = "{kubeServiceRefs: {services: [{name: a, namespace: b, clusterName: cluster-1}, {name: b, namespace: b, clusterName: cluster-1}]}}";
    let spec =
        format!("{{destinationSelector: [{selector}], policy: {{retries: {{attempts: -1}}}}}}");
    let outcome = creation(&estate(), &traffic_policy("a", &spec));
    assert_eq!(outcome.denials.len(), 3);
    let remedies: Vec<_> = outcome.remedies().collect();
    let [(denial, remedy)] = &*remedies else {
        panic!("is not one")
    };
    assert!(remedy.contains("unresolvedReferences"), "{remedy}");
    assert_eq!(**denial, outcome.denials[1]);
}

#[test]
fn a_review_by_small_slices_comes_to_the_same() {
    let (kind, object) = read(&policy("VirtualMesh", "vm", VIRTUAL_MESH));
    let by = |fuel| {
        let intent = Intent::Create(object.clone());
        let mut review = Review::new(&estate(), Candidate::new(kind, intent).unwrap());
        while !review.advance(fuel) {}
        review.finish()
    };
    let at_once = by(usize::MAX);
    assert!(at_once.effect.added > 0);
    assert_eq!(by(1), at_once);
}
