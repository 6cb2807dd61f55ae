//! See `ferromesh_fuzz::review`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ferromesh_fuzz::review(bytes));
