//! See `ferromesh_fuzz::scenario`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ferromesh_fuzz::scenario(bytes));
