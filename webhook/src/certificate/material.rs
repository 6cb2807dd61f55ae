//! What the Secret holds.

use std::collections::BTreeMap;

use ferromesh_ca::bundle::TrustBundle;
use ferromesh_ca::certificate::Certificate;
use ferromesh_ca::issue::{self, Serial, SigningCa};
use ferromesh_ca::key::PrivateKey;
use ferromesh_ca::name::SubjectAltName;
use ferromesh_ca::policy::{RootProfile, ServingProfile};
use ferromesh_ca::{Error, pem, verify};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use zeroize::{Zeroize as _, Zeroizing};

/// What the certificates call the server.
const SERVER: &str = "ferromesh webhook";

/// The certificate of the CA that signs.
pub(super) const CA_CERT: &str = "ca.crt";
/// Its key.
pub(super) const CA_KEY: &str = "ca.key";
/// The certificate of the CA that is to sign next.
pub(super) const NEXT_CERT: &str = "next-ca.crt";
/// Its key.
pub(super) const NEXT_KEY: &str = "next-ca.key";
/// What API servers are to believe.
pub(super) const BUNDLE: &str = "ca-bundle.crt";
/// The serving certificate.
pub(super) const LEAF_CERT: &str = "tls.crt";
/// Its key.
pub(super) const LEAF_KEY: &str = "tls.key";

/// A CA with less than this left is replaced.
const CA_RENEWAL: SignedDuration = SignedDuration::from_hours(365 * 24);

/// Everything that serving needs, as it is kept.
pub(super) struct Material {
    /// The CA that signs.
    pub(super) ca: SigningCa,
    /// The CA that is to sign next; API servers are told about it first.
    pub(super) next: Option<SigningCa>,
    /// What API servers are to believe: both of them, and after a change the CA before.
    pub(super) bundle: TrustBundle,
    /// The serving certificate.
    pub(super) leaf: Certificate,
    /// Its key.
    pub(super) leaf_key: PrivateKey,
}

/// Wipes what a Secret holds: private keys are in it.
pub(super) fn wipe(data: &mut BTreeMap<String, ByteString>) {
    for content in data.values_mut() {
        content.0.zeroize();
    }
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// The serving certificate grows old, or is for other names.
    RenewLeaf,
    /// The CA grows old, or somebody asks for another: one is made and believed from now on.
    StageCa,
    /// An API server believes the next CA: the time of that is noted.
    NoteBelief,
    /// All API servers believe the next CA: it signs from now on.
    SwitchCa,
    /// Nobody shows a certificate of the CA before any more: it is believed no longer.
    DropOldCa,
}

/// What the world says about the material.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings<'a> {
    /// The names under which API servers call.
    pub(super) names: &'a [SubjectAltName],
    /// The time.
    pub(super) now: Timestamp,
    /// Whether an API server has been seen to use this very bundle.
    pub(super) is_bundle_in_use: bool,
    /// Since when that is noted, by whichever replica saw it first.
    pub(super) believed: Option<Timestamp>,
    /// How long after that all of them do.
    pub(super) settling: SignedDuration,
    /// Whether somebody asks for another CA.
    pub(super) is_ca_unwanted: bool,
    /// When the CA that signs began to, if it had one before.
    pub(super) switched: Option<Timestamp>,
    /// How long the CA before is believed after that.
    pub(super) overlap: SignedDuration,
}

impl Material {
    /// A CA of its own and a first certificate.
    pub(super) fn generate(
        epoch: u64,
        names: &[SubjectAltName],
        now: Timestamp,
    ) -> Result<Self, Error> {
        let ca = authority(epoch, now)?;
        let (leaf, leaf_key) = leaf(&ca, names, now)?;
        Ok(Self {
            bundle: TrustBundle::of(ca.certificate().clone())?,
            ca,
            next: None,
            leaf,
            leaf_key,
        })
    }

    /// Reads what a Secret holds.
    pub(super) fn read(data: &BTreeMap<String, ByteString>) -> Result<Self, Error> {
        let item = |name: &str| data.get(name).map_or(&[][..], |value| &value.0);
        let ca = |certificate: &'static str, key: &'static str| {
            SigningCa::new(
                pem::read_certificate(certificate, item(certificate))?,
                PrivateKey::from_pem(key, item(key))?,
            )
        };
        Ok(Self {
            ca: ca(CA_CERT, CA_KEY)?,
            next: data
                .contains_key(NEXT_CERT)
                .then(|| ca(NEXT_CERT, NEXT_KEY))
                .transpose()?,
            bundle: TrustBundle::from_pem(BUNDLE, item(BUNDLE))?,
            leaf: pem::read_certificate(LEAF_CERT, item(LEAF_CERT))?,
            leaf_key: PrivateKey::from_pem(LEAF_KEY, item(LEAF_KEY))?,
        })
    }

    /// What is to be kept of it.
    pub(super) fn write(&self) -> Result<BTreeMap<String, ByteString>, Error> {
        let mut data = BTreeMap::new();
        let mut put = |name: &str, text: &str| {
            data.insert(name.to_owned(), ByteString(text.as_bytes().to_vec()));
        };
        put(CA_CERT, &self.ca.certificate().to_pem());
        put(CA_KEY, &self.ca.key().to_pkcs8_pem());
        if let Some(next) = &self.next {
            put(NEXT_CERT, &next.certificate().to_pem());
            put(NEXT_KEY, &next.key().to_pkcs8_pem());
        }
        put(BUNDLE, &self.bundle.to_pem()?);
        put(LEAF_CERT, &self.leaf.to_pem());
        put(LEAF_KEY, &self.leaf_key.to_pkcs8_pem());
        Ok(data)
    }

    /// Chain and key of the serving certificate, as PEM.
    pub(super) fn credential(&self) -> (String, Zeroizing<String>) {
        (self.leaf.to_pem(), self.leaf_key.to_pkcs8_pem())
    }

    /// What is to be done next, if anything. Judged by the clock alone, at short intervals: a
    /// machine that slept finds out when it wakes.
    pub(super) fn due(&self, around: &Surroundings<'_>) -> Option<Task> {
        let Surroundings {
            names,
            now,
            is_bundle_in_use,
            believed,
            settling,
            is_ca_unwanted,
            switched,
            overlap,
        } = *around;
        let is_worn = self.leaf.remaining(now) * 3 < self.leaf.life()
            || verify::verify_serving(&self.leaf, names, &self.bundle, now).is_err();
        let is_old = self.ca.certificate().remaining(now) < CA_RENEWAL;
        if let Some(next) = &self.next {
            let is_staged = self.bundle.roots().contains(next.certificate());
            match believed {
                Some(since) if is_staged && since + settling <= now => return Some(Task::SwitchCa),
                None if is_staged && is_bundle_in_use => return Some(Task::NoteBelief),
                _ => {}
            }
        } else if is_old || is_ca_unwanted {
            return Some(Task::StageCa);
        } else if self.bundle.roots().len() > 1 {
            let is_over = switched.is_none_or(|switched| switched + overlap <= now);
            if is_over {
                return Some(Task::DropOldCa);
            }
        }
        is_worn.then_some(Task::RenewLeaf)
    }

    /// Does what is to be done. `epoch` counts the CAs.
    pub(super) fn perform(
        self,
        task: Task,
        epoch: u64,
        names: &[SubjectAltName],
        now: Timestamp,
    ) -> Result<Self, Error> {
        match task {
            Task::RenewLeaf => {
                let (leaf, leaf_key) = leaf(&self.ca, names, now)?;
                Ok(Self {
                    leaf,
                    leaf_key,
                    ..self
                })
            }
            Task::NoteBelief => Ok(self),
            Task::StageCa => {
                let next = authority(epoch, now)?;
                Ok(Self {
                    bundle: self.bundle.with(next.certificate().clone())?,
                    next: Some(next),
                    ..self
                })
            }
            Task::SwitchCa => {
                let Some(ca) = self.next else { return Ok(self) };
                let (leaf, leaf_key) = leaf(&ca, names, now)?;
                Ok(Self {
                    ca,
                    next: None,
                    bundle: self.bundle,
                    leaf,
                    leaf_key,
                })
            }
            Task::DropOldCa => Ok(Self {
                bundle: TrustBundle::of(self.ca.certificate().clone())?,
                ..self
            }),
        }
    }
}

fn authority(epoch: u64, now: Timestamp) -> Result<SigningCa, Error> {
    let profile = RootProfile::for_serving(SERVER, epoch)?;
    let key = PrivateKey::generate(profile.key_algorithm())?;
    issue::self_signed_root(key, &profile, now, serial())
}

fn leaf(
    ca: &SigningCa,
    names: &[SubjectAltName],
    now: Timestamp,
) -> Result<(Certificate, PrivateKey), Error> {
    let profile = ServingProfile::new(SERVER, names.to_vec())?;
    let key = PrivateKey::generate(profile.key_algorithm())?;
    let leaf = issue::serving_leaf(key.public_key(), &profile, ca, now, serial())?;
    Ok((leaf, key))
}

fn serial() -> Serial {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).expect("the operating system has randomness");
    Serial::from_random(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    fn names() -> &'static [SubjectAltName] {
        static NAMES: LazyLock<Vec<SubjectAltName>> =
            LazyLock::new(|| vec!["ferromesh.gloo-mesh.svc".parse().unwrap()]);
        &NAMES
    }

    fn begin() -> Timestamp {
        "2026-11-21T00:00:00Z".parse().unwrap()
    }

    fn days(count: i64) -> SignedDuration {
        SignedDuration::from_hours(24 * count)
    }

    fn at(names: &[SubjectAltName], now: Timestamp) -> Surroundings<'_> {
        Surroundings {
            names,
            now,
            is_bundle_in_use: true,
            believed: Some(now),
            settling: SignedDuration::ZERO,
            is_ca_unwanted: false,
            switched: None,
            overlap: SignedDuration::from_hours(1),
        }
    }

    /// What API servers would verify.
    fn serves(material: &Material, bundle: &TrustBundle, now: Timestamp) -> bool {
        verify::verify_serving(&material.leaf, names(), bundle, now).is_ok()
    }

    #[test]
    fn new_material_serves_and_asks_for_nothing() {
        let material = Material::generate(1, names(), begin()).unwrap();
        assert!(serves(&material, &material.bundle, begin()));
        assert_eq!(material.due(&at(names(), begin())), None);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let material = Material::generate(1, names(), begin()).unwrap();
        let staged = material
            .perform(Task::StageCa, 2, names(), begin())
            .unwrap();
        let data = staged.write().unwrap();
        let read = Material::read(&data).unwrap();
        assert_eq!(read.write().unwrap(), data);
        assert!(read.next.is_some());
    }

    #[test]
    fn what_is_damaged_is_not_read() {
        let data = Material::generate(1, names(), begin())
            .unwrap()
            .write()
            .unwrap();
        for item in [CA_CERT, CA_KEY, BUNDLE, LEAF_CERT, LEAF_KEY] {
            let mut damaged = data.clone();
            damaged.remove(item);
            assert!(Material::read(&damaged).is_err(), "without {item}");
            damaged.insert(item.to_owned(), ByteString(b"nonsense".to_vec()));
            assert!(Material::read(&damaged).is_err(), "with a broken {item}");
        }
    }

    #[test]
    fn a_certificate_is_renewed_when_a_third_of_its_life_is_left() {
        let material = Material::generate(1, names(), begin()).unwrap();
        assert_eq!(material.due(&at(names(), begin() + days(59))), None);
        let late = begin() + days(61);
        assert_eq!(material.due(&at(names(), late)), Some(Task::RenewLeaf));
        let renewed = material.perform(Task::RenewLeaf, 1, names(), late).unwrap();
        assert_eq!(renewed.due(&at(names(), late)), None);
        assert!(serves(&renewed, &renewed.bundle, late + days(80)));
    }

    #[test]
    fn a_certificate_is_renewed_when_the_server_is_called_by_other_names() {
        let material = Material::generate(1, names(), begin()).unwrap();
        let other = ["10.0.0.1".parse().unwrap()];
        assert_eq!(material.due(&at(&other, begin())), Some(Task::RenewLeaf));
        let renewed = material
            .perform(Task::RenewLeaf, 1, &other, begin())
            .unwrap();
        assert_eq!(renewed.due(&at(&other, begin())), None);
    }

    #[test]
    fn an_expired_certificate_is_renewed_however_long_we_slept() {
        let material = Material::generate(1, names(), begin()).unwrap();
        let late = begin() + days(1000);
        assert_eq!(material.due(&at(names(), late)), Some(Task::RenewLeaf));
    }

    #[test]
    fn a_ca_is_replaced_in_steps_of_which_each_is_believed_by_those_of_the_step_before() {
        let old = Material::generate(1, names(), begin()).unwrap();
        let before = old.bundle.clone();
        let late = begin() + days(3650 - 364);
        let old = old.perform(Task::RenewLeaf, 1, names(), late).unwrap();
        assert_eq!(old.due(&at(names(), late)), Some(Task::StageCa));

        let staged = old.perform(Task::StageCa, 2, names(), late).unwrap();
        let both = staged.bundle.clone();
        assert!(both.is_superset(&before));
        assert!(serves(&staged, &before, late) && serves(&staged, &both, late));
        let unseen = Surroundings {
            is_bundle_in_use: false,
            believed: None,
            ..at(names(), late)
        };
        assert_eq!(
            staged.due(&unseen),
            None,
            "nobody has been seen to believe it"
        );
        let seen = Surroundings {
            is_bundle_in_use: true,
            ..unseen
        };
        assert_eq!(staged.due(&seen), Some(Task::NoteBelief));
        let settling = Surroundings {
            believed: Some(late),
            settling: SignedDuration::from_secs(30),
            ..at(names(), late + SignedDuration::from_secs(29))
        };
        assert_eq!(staged.due(&settling), None, "others have not heard yet");
        assert_eq!(staged.due(&at(names(), late)), Some(Task::SwitchCa));

        let switched = staged.perform(Task::SwitchCa, 2, names(), late).unwrap();
        assert!(serves(&switched, &both, late));
        assert!(!serves(&switched, &before, late), "it is another CA");
        let just_now = Surroundings {
            switched: Some(late),
            ..at(names(), late)
        };
        assert_eq!(switched.due(&just_now), None, "the overlap has begun");
        let later = Surroundings {
            now: late + SignedDuration::from_hours(1),
            ..just_now
        };
        assert_eq!(switched.due(&later), Some(Task::DropOldCa));

        let alone = switched
            .perform(Task::DropOldCa, 2, names(), later.now)
            .unwrap();
        assert_eq!(alone.bundle.roots(), [alone.ca.certificate().clone()]);
        assert!(serves(&alone, &alone.bundle, later.now));
        assert_eq!(alone.due(&later), None);
    }

    #[test]
    fn a_ca_is_replaced_when_somebody_asks() {
        let material = Material::generate(1, names(), begin()).unwrap();
        let asked = Surroundings {
            is_ca_unwanted: true,
            ..at(names(), begin())
        };
        assert_eq!(material.due(&asked), Some(Task::StageCa));
    }

    #[test]
    fn a_certificate_is_renewed_while_a_ca_waits_to_be_believed() {
        let material = Material::generate(1, names(), begin())
            .unwrap()
            .perform(Task::StageCa, 2, names(), begin())
            .unwrap();
        let late = Surroundings {
            is_bundle_in_use: false,
            believed: None,
            ..at(names(), begin() + days(80))
        };
        assert_eq!(material.due(&late), Some(Task::RenewLeaf));
    }
}
