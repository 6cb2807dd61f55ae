use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};

use ferromesh_runtime::{
    telemetry::Chain,
    tls::{Credential, CredentialFiles, Error, ServedCredential},
};
use jiff::Timestamp;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::wire::{Pair, SOON, raise};

#[test]
fn what_cannot_be_served_is_an_error_that_says_why() {
    let (one, other) = (Pair::new(), Pair::new());
    let refused = |chain: &str, key: &str| {
        Credential::from_pem(chain.as_bytes(), key.as_bytes()).unwrap_err()
    };
    assert!(matches!(refused("", &one.key), Error::NoCertificate));
    assert!(matches!(refused(&one.key, &one.key), Error::NoCertificate));
    assert!(matches!(refused(&one.chain, &one.chain), Error::NoKey));
    assert!(matches!(refused(&one.chain, &other.key), Error::Key(_)));
    let garbage = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    assert!(matches!(refused(garbage, &one.key), Error::Leaf(_)));
    let not_base64 = "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
    assert!(matches!(refused(not_base64, &one.key), Error::Chain(_)));
}

#[test]
fn knows_when_it_expires_and_shows_nothing_of_the_key() {
    let pair = Pair::new();
    let credential = pair.credential();
    assert!(credential.not_after() > Timestamp::now());
    assert_ne!(
        credential.fingerprint(),
        Pair::new().credential().fingerprint()
    );
    let shown = format!("{credential:?}");
    assert!(shown.contains("not_after"), "{shown}");
    let secret = pair.key.lines().nth(1).unwrap();
    assert!(
        !shown.contains(secret) && !shown.contains("PRIVATE"),
        "{shown}"
    );
}

/// A directory as kubelet makes it for a Secret: files are links through `..data`, which is swapped.
struct SecretVolume(PathBuf);

impl SecretVolume {
    fn new(name: &str, pair: &Pair) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        if path.exists() {
            fs::remove_dir_all(&path).unwrap();
        }
        fs::create_dir_all(&path).unwrap();
        let volume = Self(path);
        volume.swap("..first", &pair.chain, &pair.key);
        for file in ["tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(file), volume.0.join(file)).unwrap();
        }
        volume
    }

    fn swap(&self, version: &str, chain: &str, key: &str) {
        let directory = self.0.join(version);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("tls.crt"), chain).unwrap();
        fs::write(directory.join("tls.key"), key).unwrap();
        let fresh = self.0.join("..fresh");
        symlink(version, &fresh).unwrap();
        fs::rename(fresh, self.0.join("..data")).unwrap();
    }

    fn files(&self) -> CredentialFiles {
        CredentialFiles {
            chain: self.0.join("tls.crt"),
            key: self.0.join("tls.key"),
        }
    }
}

impl Drop for SecretVolume {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

async fn until_served(served: &ServedCredential, pair: &Pair) {
    let expected = pair.credential().fingerprint();
    let is_served = || {
        served
            .current()
            .is_some_and(|current| current.fingerprint() == expected)
    };
    let waiting = async {
        while !is_served() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, waiting)
        .await
        .expect("the credential is served in time");
}

#[tokio::test]
async fn a_swapped_secret_volume_is_followed_again_and_again_and_garbage_is_not() {
    let (first, second, third) = (Pair::new(), Pair::new(), Pair::new());
    let volume = SecretVolume::new("followed", &first);
    let files = volume.files();
    let served = ServedCredential::new();
    served.replace(files.load().await.unwrap());
    let cancel = CancellationToken::new();
    let following = tokio::spawn({
        let (served, cancel) = (served.clone(), cancel.clone());
        async move {
            files
                .follow(&served, Duration::from_millis(5), cancel)
                .await;
        }
    });
    volume.swap("..second", &second.chain, &second.key);
    until_served(&served, &second).await;

    volume.swap("..torn", &third.chain, &second.key);
    assert!(volume.files().load().await.is_err());
    volume.swap("..third", &third.chain, &third.key);
    until_served(&served, &third).await;

    cancel.cancel();
    following.await.unwrap();
}

#[tokio::test]
async fn a_hangup_signal_reads_the_files_at_once() {
    let (first, second) = (Pair::new(), Pair::new());
    let volume = SecretVolume::new("hangup", &first);
    let files = volume.files();
    let served = ServedCredential::new();
    let following = tokio::spawn({
        let served = served.clone();
        async move {
            files
                .follow(&served, Duration::from_hours(1), CancellationToken::new())
                .await;
        }
    });
    // From here on the signal is taken; before, it would end this process.
    let _taken = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).unwrap();
    volume.swap("..second", &second.chain, &second.key);
    let expected = second.credential().fingerprint();
    let is_served = || {
        served
            .current()
            .is_some_and(|current| current.fingerprint() == expected)
    };
    let waiting = async {
        while !is_served() {
            raise("HUP");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, waiting)
        .await
        .expect("the credential is served in time");
    following.abort();
}

#[tokio::test]
async fn a_missing_file_is_named() {
    let files = CredentialFiles {
        chain: "/nowhere/tls.crt".into(),
        key: "/nowhere/tls.key".into(),
    };
    let error = files.load().await.unwrap_err();
    assert_eq!(
        Chain(&error).to_string(),
        "reading /nowhere/tls.crt: No such file or directory (os error 2)"
    );
}
