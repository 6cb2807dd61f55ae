//! What holds a private key cannot be printed, copied or written by chance. This is proven by compiling.

use std::fmt::{Debug, Display};

use ferromesh_ca::cacerts::CaCerts;
use ferromesh_ca::issue::SigningCa;
use ferromesh_ca::key::PrivateKey;

/// Compiles where a type does not have a trait: where it does, two implementations fit.
macro_rules! never {
    ($($type:ty: $($trait:path),*;)*) => {$($(
        const _: fn() = || {
            trait Fits<Which> {
                fn fits() {}
            }
            impl<T: ?Sized> Fits<()> for T {}
            #[allow(dead_code, reason = "it tells the two implementations apart")]
            struct Has;
            impl<T: ?Sized + $trait> Fits<Has> for T {}
            let _: fn() = <$type as Fits<_>>::fits;
        };
    )*)*};
}

never! {
    PrivateKey: Debug, Display, Clone, AsRef<[u8]>, PartialEq;
    SigningCa: Debug, Display, Clone, PartialEq;
    CaCerts: Debug, Display, Clone, PartialEq;
}
