//! Chains, and what each of the verifiers alone would have let through.

use ferromesh_ca::bundle::{RootId, TrustBundle};
use ferromesh_ca::certificate::Certificate;
use ferromesh_ca::issue::SigningCa;
use ferromesh_ca::lint::Rule;
use ferromesh_ca::verify::{self, VerifiedSigner};
use jiff::SignedDuration;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};

use crate::fixtures::{
    Foreign, URI, bundle, common_name, days, foreign_root, intermediate, now, p256, resign, root,
    rules, without_key_ids,
};

/// The rules that a signer breaks under a root, alone in its chain.
fn signer_rules(root: &Foreign, signer: &Foreign) -> Vec<Rule> {
    rules(verify_foreign(root, signer, &[]))
}

fn verify_foreign(
    root: &Foreign,
    signer: &Foreign,
    chain: &[Certificate],
) -> Result<VerifiedSigner, ferromesh_ca::Error> {
    let roots = bundle(&root.certificate());
    let key = signer.private_key();
    verify::verify_signer(&signer.certificate(), &key, chain, &roots, now())
}

/// The leaf of a workload, sound but for `change`.
fn leaf(signer: &Foreign, change: impl FnOnce(&mut CertificateParams)) -> Certificate {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.subject_alt_names = vec![SanType::URI(URI.try_into().unwrap())];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    params.use_authority_key_identifier_extension = true;
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let issuer = Issuer::from_params(&signer.params, &signer.key);
    let der = params.signed_by(&key, &issuer).unwrap().der().to_vec();
    Certificate::from_der(&der).unwrap()
}

#[test]
fn a_signer_reports_its_root_and_the_end_of_its_path() {
    let root = root();
    let key = p256();
    let signer = intermediate(&root, &key);
    let roots = bundle(root.certificate());
    let verified = verify::verify_signer(&signer, &key, &[], &roots, now()).unwrap();
    assert_eq!(verified.root_id(), RootId::of(root.certificate()));
    assert_eq!(verified.not_after(), signer.not_after());
    assert_eq!(verified.key_fingerprint(), key.public_key().fingerprint());
    let written = verified.root_id().to_string();
    assert_eq!(written.parse(), Ok(verified.root_id()));
}

#[test]
fn a_signer_outside_its_life_is_refused() {
    let root = root();
    let key = p256();
    let signer = intermediate(&root, &key);
    let roots = bundle(root.certificate());
    let at = |time| rules(verify::verify_signer(&signer, &key, &[], &roots, time));
    let early = at(now() - SignedDuration::from_hours(2));
    assert!(matches!(early[..], [Rule::NotYetValid { .. }]));
    assert!(matches!(at(now() + days(91))[..], [Rule::Expired { .. }]));
}

/// rustls does not look at the expiry of anchors.
#[test]
fn an_expired_anchor_is_refused_though_everything_below_is_valid() {
    let root = foreign_root(|params| params.not_after = rcgen::date_time_ymd(2026, 11, 1));
    let signer = root.issue(|_| {});
    assert!(matches!(
        signer_rules(&root, &signer)[..],
        [Rule::Expired { .. }]
    ));
}

/// Neither rustls nor Envoy look at the path length of anchors.
#[test]
fn a_path_longer_than_its_anchor_allows_is_refused() {
    let root = foreign_root(|params| params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0)));
    let signer = root.issue(|_| {});
    let (allowed, needed) = (0, 1);
    assert_eq!(
        signer_rules(&root, &signer),
        [Rule::PathLength { allowed, needed }]
    );
}

#[test]
fn a_path_longer_than_an_intermediate_allows_is_refused() {
    let root = foreign_root(|_| {});
    let upper = root.issue(|params| params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0)));
    let lower = upper.issue(|params| params.distinguished_name = common_name("lower"));
    let chain = [upper.certificate()];
    let (allowed, needed) = (0, 1);
    assert_eq!(
        rules(verify_foreign(&root, &lower, &chain)),
        [Rule::PathLength { allowed, needed }]
    );
    let upper = root.issue(|_| {});
    let lower = upper.issue(|params| params.distinguished_name = common_name("lower"));
    assert_eq!(
        rules(verify_foreign(&root, &lower, &[upper.certificate()])),
        []
    );
}

#[test]
fn an_intermediate_with_an_extended_key_usage_is_judged_for_both_ends() {
    use ExtendedKeyUsagePurpose::{ClientAuth, CodeSigning, ServerAuth};
    let root = foreign_root(|_| {});
    for purposes in [vec![CodeSigning], vec![ClientAuth]] {
        let signer = root.issue(|params| params.extended_key_usages = purposes);
        assert_eq!(signer_rules(&root, &signer), [Rule::ExtendedKeyUsage]);
    }
    let both = root.issue(|params| params.extended_key_usages = vec![ServerAuth, ClientAuth]);
    assert_eq!(signer_rules(&root, &both), []);
}

/// rustls does not look at the key usage.
#[test]
fn a_signer_without_key_cert_sign_is_refused() {
    let root = foreign_root(|_| {});
    let usages = vec![KeyUsagePurpose::DigitalSignature];
    let signer = root.issue(|params| params.key_usages = usages);
    assert_eq!(signer_rules(&root, &signer), [Rule::NoKeyCertSign]);
}

#[test]
fn a_signer_that_is_no_ca_is_refused() {
    let root = foreign_root(|_| {});
    let signer = root.issue(|params| params.is_ca = IsCa::ExplicitNoCa);
    assert_eq!(signer_rules(&root, &signer), [Rule::NotCa]);
}

#[test]
fn a_signer_of_a_root_that_is_not_there_is_refused_by_name() {
    let signer = foreign_root(|_| {}).issue(|_| {});
    let other = foreign_root(|params| params.distinguished_name = common_name("other"));
    let issuer = "CN=foreign root".to_owned();
    assert_eq!(
        signer_rules(&other, &signer),
        [Rule::IssuerUnknown { issuer }]
    );
}

#[test]
fn a_root_of_the_right_name_and_another_key_is_refused() {
    let signer = foreign_root(|_| {}).issue(|_| {});
    assert_eq!(
        signer_rules(&foreign_root(|_| {}), &signer),
        [Rule::KeyIdMismatch]
    );
    let plain = foreign_root(without_key_ids).issue(|_| {});
    assert_eq!(
        signer_rules(&foreign_root(without_key_ids), &plain),
        [Rule::Signature]
    );
}

#[test]
fn a_signer_changed_after_signing_is_refused() {
    let root = foreign_root(|_| {});
    let mut signer = root.issue(|_| {});
    signer.der = resign(&signer.der, &KeyPair::generate().unwrap(), |_| {});
    assert_eq!(signer_rules(&root, &signer), [Rule::Signature]);
}

/// OpenSSL and BoringSSL would try only the first.
#[test]
fn an_issuer_that_only_its_key_tells_apart_is_refused() {
    let (a, b) = (foreign_root(|_| {}), foreign_root(|_| {}));
    // It does not say which of the two it means.
    let signer = b.issue(|params| params.use_authority_key_identifier_extension = false);
    let roots = bundle(&a.certificate()).with(b.certificate()).unwrap();
    let verified = verify::verify_signer(
        &signer.certificate(),
        &signer.private_key(),
        &[],
        &roots,
        now(),
    );
    assert_eq!(rules(verified), [Rule::SameSubject]);
    assert_eq!(signer_rules(&b, &signer), []);
}

/// The shape that upstream issues: every verifier takes it.
#[test]
fn a_signer_without_subject_passes_where_key_ids_are_there() {
    let root = foreign_root(|_| {});
    let signer = root.issue(|params| params.distinguished_name = DistinguishedName::new());
    assert_eq!(signer_rules(&root, &signer), []);
}

#[test]
fn a_root_that_signs_leaves_itself_passes() {
    let root = foreign_root(|_| {});
    assert_eq!(rules(verify_foreign(&root, &root, &[])), []);
}

#[test]
fn a_cross_certificate_leads_to_the_other_root() {
    let (old, new) = (foreign_root(|_| {}), {
        foreign_root(|params| params.distinguished_name = common_name("new root"))
    });
    let signer = new.issue(|_| {});
    let key = KeyPair::from_pem(&new.key.serialize_pem()).unwrap();
    let cross = old.issue_for(key, |params| {
        params.distinguished_name = common_name("new root");
    });
    let chain = [cross.certificate()];
    for roots in [
        bundle(&old.certificate()),
        bundle(&new.certificate()),
        bundle(&old.certificate()).with(new.certificate()).unwrap(),
    ] {
        let key = signer.private_key();
        let verified =
            verify::verify_signer(&signer.certificate(), &key, &chain, &roots, now()).unwrap();
        let believed = if roots.roots().contains(&new.certificate()) {
            &new
        } else {
            &old
        };
        assert_eq!(verified.root_id(), RootId::of(&believed.certificate()));
    }
}

#[test]
fn leftovers_of_a_rotation_do_no_harm() {
    let root = root();
    let key = p256();
    let signer = intermediate(&root, &key);
    let old = foreign_root(|params| params.not_after = rcgen::date_time_ymd(2026, 2, 1));
    let roots = bundle(&old.certificate())
        .with(root.certificate().clone())
        .unwrap();
    let chain = [root.certificate().clone()];
    assert!(verify::verify_signer(&signer, &key, &chain, &roots, now()).is_ok());
}

#[test]
fn of_two_editions_of_a_root_the_valid_one_counts() {
    let old = foreign_root(|params| params.not_after = rcgen::date_time_ymd(2026, 2, 1));
    let signer = old.issue(|_| {});
    let mut params = old.params.clone();
    params.not_after = rcgen::date_time_ymd(2040, 1, 1);
    params.serial_number = Some(vec![7; 16].into());
    let renewed = params.self_signed(&old.key).unwrap().der().to_vec();
    let renewed = Certificate::from_der(&renewed).unwrap();
    assert_eq!(RootId::of(&renewed), RootId::of(&old.certificate()));
    let roots = bundle(&old.certificate()).with(renewed).unwrap();
    let key = signer.private_key();
    let verified = verify::verify_signer(&signer.certificate(), &key, &[], &roots, now());
    assert_eq!(rules(verified), []);
}

#[test]
fn a_path_of_too_many_intermediates_is_refused() {
    let root = foreign_root(|_| {});
    let mut chain = vec![root.issue(|params| params.distinguished_name = common_name("0"))];
    for index in 1..8 {
        let name = index.to_string();
        let next = chain[index - 1].issue(|params| params.distinguished_name = common_name(&name));
        chain.push(next);
    }
    let certificates: Vec<Certificate> = chain.iter().map(Foreign::certificate).collect();
    assert_eq!(rules(verify_foreign(&root, &chain[5], &certificates)), []);
    assert_eq!(
        rules(verify_foreign(&root, &chain[6], &certificates)),
        [Rule::PathTooLong]
    );
}

#[test]
fn two_cas_that_sign_each_other_end_in_an_error() {
    let (a, b) = (foreign_root(|_| {}), {
        foreign_root(|params| params.distinguished_name = common_name("b"))
    });
    let copy = |of: &Foreign| KeyPair::from_pem(&of.key.serialize_pem()).unwrap();
    let a_by_b = b.issue_for(copy(&a), |params| {
        params.distinguished_name = common_name("foreign root");
    });
    let b_by_a = a.issue_for(copy(&b), |params| {
        params.distinguished_name = common_name("b");
    });
    let elsewhere = foreign_root(|params| params.distinguished_name = common_name("c"));
    let chain = [a_by_b.certificate(), b_by_a.certificate()];
    assert_eq!(
        rules(verify_foreign(&elsewhere, &a_by_b, &chain)),
        [Rule::PathTooLong]
    );
}

#[test]
fn a_workload_has_exactly_one_identity() {
    let root = foreign_root(|_| {});
    let signer = root.issue(|_| {});
    let roots = bundle(&root.certificate());
    let chain = [signer.certificate()];
    let identity = |leaf: &Certificate| {
        verify::verify_workload(leaf, &chain, &roots, now()).map(ToOwned::to_owned)
    };
    assert_eq!(identity(&leaf(&signer, |_| {})).unwrap(), URI);
    for (found, uris) in [(0, vec![]), (2, vec![URI, "spiffe://other/ns/a/sa/b"])] {
        let leaf = leaf(&signer, |params| {
            params.subject_alt_names = uris
                .iter()
                .map(|uri| SanType::URI((*uri).try_into().unwrap()))
                .chain([SanType::DnsName("a.b".try_into().unwrap())])
                .collect();
        });
        assert_eq!(rules(identity(&leaf)), [Rule::Identity { found }]);
    }
}

/// An identity counts only after the chain: the reason given is the chain.
#[test]
fn a_workload_of_a_foreign_root_has_no_identity() {
    let signer = foreign_root(|_| {}).issue(|_| {});
    let two = leaf(&signer, |params| {
        let uri = SanType::URI("spiffe://other/ns/a/sa/b".try_into().unwrap());
        params.subject_alt_names.push(uri);
    });
    let roots = bundle(root().certificate());
    let verified = verify::verify_workload(&two, &[signer.certificate()], &roots, now());
    assert!(matches!(rules(verified)[..], [Rule::IssuerUnknown { .. }]));
}

#[test]
fn a_leaf_that_is_not_one_is_refused() {
    let root = foreign_root(|_| {});
    let signer = root.issue(|_| {});
    let roots = bundle(&root.certificate());
    let chain = [signer.certificate()];
    let broken = |leaf: &Certificate| rules(verify::verify_workload(leaf, &chain, &roots, now()));
    let ca = leaf(&signer, |params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    });
    assert_eq!(broken(&ca), [Rule::IsCa]);
    let usages = vec![KeyUsagePurpose::KeyEncipherment];
    let mute = leaf(&signer, |params| params.key_usages = usages);
    assert_eq!(broken(&mute), [Rule::NoDigitalSignature]);
    let old = leaf(&signer, |params| {
        params.not_after = rcgen::date_time_ymd(2026, 2, 1);
    });
    assert!(matches!(broken(&old)[..], [Rule::Expired { .. }]));
    let purposes = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let server = leaf(&signer, |params| params.extended_key_usages = purposes);
    assert!(matches!(broken(&server)[..], [Rule::Rustls(_)]));
}

#[test]
fn the_same_material_has_the_same_fingerprint_and_new_material_another() {
    let root = root();
    let verified = |root: &SigningCa| {
        let key = p256();
        let signer = intermediate(root, &key);
        let roots = TrustBundle::of(root.certificate().clone()).unwrap();
        verify::verify_signer(&signer, &key, &[], &roots, now()).unwrap()
    };
    let (first, second) = (verified(&root), verified(&root));
    assert_eq!(
        first.content_fingerprint(),
        first.clone().content_fingerprint()
    );
    assert_ne!(first.content_fingerprint(), second.content_fingerprint());
    assert_ne!(first.key_fingerprint(), second.key_fingerprint());
    assert_eq!(first.root_id(), second.root_id());
}
