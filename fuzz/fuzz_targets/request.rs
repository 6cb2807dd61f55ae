//! See `ferromesh_fuzz::request`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ferromesh_fuzz::request(bytes));
