//! See `ferromesh_fuzz::kubeconfig`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ferromesh_fuzz::kubeconfig(bytes));
