//! Where time, keys and serial numbers come from.

use std::sync::Arc;

use ferromesh_ca::issue::Serial;
use ferromesh_ca::key::{KeyAlgorithm, PrivateKey};
use jiff::Timestamp;

/// Where time, keys and serial numbers come from: the only clock and randomness of certificates.
#[derive(Clone)]
pub struct Sources {
    /// The time.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// New private keys. May take seconds.
    pub key: Arc<dyn Fn(KeyAlgorithm) -> Result<PrivateKey, ferromesh_ca::Error> + Send + Sync>,
    /// New serial numbers.
    pub serial: Arc<dyn Fn() -> Result<Serial, ferromesh_ca::Error> + Send + Sync>,
}

impl Sources {
    /// The clock and the randomness of the operating system.
    pub fn system() -> Self {
        Self {
            now: Arc::new(Timestamp::now),
            key: Arc::new(PrivateKey::generate),
            serial: Arc::new(|| {
                let mut bytes = [0; 16];
                match aws_lc_rs::rand::fill(&mut bytes) {
                    Ok(()) => Ok(Serial::from_random(bytes)),
                    Err(_) => Err(ferromesh_ca::Error::Signing),
                }
            }),
        }
    }

    pub(super) fn hands(&self) -> ferromesh_hands::Sources {
        ferromesh_hands::Sources {
            now: self.now.clone(),
            key: self.key.clone(),
        }
    }
}
