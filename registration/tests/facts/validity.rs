use ferromesh_registration::Validity;
use k8s_openapi::{
    api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp,
};

fn time(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn secret(annotations: &[(&str, &str)]) -> Secret {
    let prefixed = |(key, value): &(&str, &str)| {
        (
            format!("registration.mesh.gloo.solo.io/{key}"),
            (*value).to_owned(),
        )
    };
    Secret {
        metadata: ObjectMeta {
            annotations: Some(annotations.iter().map(prefixed).collect()),
            ..ObjectMeta::default()
        },
        ..Secret::default()
    }
}

#[test]
fn a_token_is_renewed_when_half_of_its_life_is_over() {
    let validity = Validity {
        issued: time(1000),
        expires: time(3000),
    };
    assert_eq!(validity.renewal(), time(2000));
    assert!(!validity.is_renewal_due(time(1999)));
    assert!(validity.is_renewal_due(time(2000)));
    assert!(validity.is_renewal_due(time(4000)));
}

#[test]
fn a_token_that_makes_no_sense_is_renewed_at_once() {
    let validity = Validity {
        issued: time(3000),
        expires: time(1000),
    };
    assert!(validity.is_renewal_due(time(1000)));
    let validity = Validity {
        issued: Timestamp::MIN,
        expires: Timestamp::MAX,
    };
    assert!(validity.is_renewal_due(Timestamp::MAX));
}

#[test]
fn the_validity_of_a_stored_token_is_in_its_annotations() {
    let stored = secret(&[
        ("credential-issued", "2026-11-21T10:00:00Z"),
        ("credential-expires", "2026-11-28T10:00:00Z"),
    ]);
    let validity = Validity::of(&stored).unwrap();
    assert_eq!(validity.renewal(), "2026-11-24T22:00:00Z".parse().unwrap());
}

#[test]
fn a_stored_token_without_two_dates_is_nobodys_to_renew() {
    for annotations in [
        &[][..],
        &[("credential-expires", "never")],
        &[
            ("credential-issued", "2026-11-21T10:00:00Z"),
            ("credential-expires", "never"),
        ],
        &[("credential-expires", "2026-11-28T10:00:00Z")],
    ] {
        assert_eq!(Validity::of(&secret(annotations)), None, "{annotations:?}");
    }
    assert_eq!(Validity::of(&Secret::default()), None);
}
