//! How values are read and written: the leniencies of protobuf's JSON form, each written once.
//!
//! Users' files rely on them: `null` means "not set", an enum is read in any letter case or by its
//! number, a 64-bit integer may be a quoted string, and what equals the zero value is not written.

use std::fmt;

use serde::de::value::{StrDeserializer, U32Deserializer};
use serde::de::{self, Deserialize, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

/// True for what is not written: the zero value.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads `null` as the zero value.
pub(crate) fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads an enum by its name in any letter case, by its number, or `null` as the zero value.
///
/// The variants of `T` must be declared in the order of their numbers, without a gap.
pub(crate) fn enumeration<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + DeserializeOwned,
{
    deserializer.deserialize_any(Enumeration(std::marker::PhantomData))
}

/// Reads a 64-bit integer that may be a quoted string, or `null` as zero.
pub(crate) fn int64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    deserializer.deserialize_any(Int64)
}

struct Enumeration<T>(std::marker::PhantomData<T>);

impl<T: Default + DeserializeOwned> Visitor<'_> for Enumeration<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name or the number of an enum value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<T, E> {
        T::deserialize(AnyCase(name, std::marker::PhantomData))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        let number = u32::try_from(number)
            .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))?;
        let number: U32Deserializer<E> = number.into_deserializer();
        T::deserialize(number)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        let unsigned = u64::try_from(number)
            .map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))?;
        self.visit_u64(unsigned)
    }
}

/// Offers a name to a derived enum as the spelling that the enum itself uses.
struct AnyCase<'a, E>(&'a str, std::marker::PhantomData<E>);

impl<'de, E: de::Error> Deserializer<'de> for AnyCase<'_, E> {
    type Error = E;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_str(self.0)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, E> {
        let name = variants
            .iter()
            .find(|variant| variant.eq_ignore_ascii_case(self.0))
            .map_or(self.0, |variant| *variant);
        let name: StrDeserializer<'_, E> = name.into_deserializer();
        visitor.visit_enum(name)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Int64;

impl Visitor<'_> for Int64 {
    type Value = i64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a 64-bit integer, as a number or as a string")
    }

    fn visit_unit<E: de::Error>(self) -> Result<i64, E> {
        Ok(0)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<i64, E> {
        Ok(number)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<i64, E> {
        i64::try_from(number).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
    }

    fn visit_str<E: de::Error>(self, number: &str) -> Result<i64, E> {
        number
            .parse()
            .map_err(|_| E::invalid_value(de::Unexpected::Str(number), &self))
    }
}
