//! Objects that can be read in part.
//!
//! The shape of an object is checked when it is stored, so what cannot be read here was stored under
//! another definition of its kind. Such an object is read without the fields that are in the way: a field
//! here is one of `spec`, `status` or `metadata`, and is left out whole. Anything finer would change what
//! a selector means: a selector without one of its conditions selects more, a list without one of its
//! entries less.

use std::borrow::Cow;

use ferromesh_core::{Code, Input, Kind, model::Rejection};
use kube::{
    Resource,
    core::{DynamicResourceScope, ObjectMeta},
};
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::{Map, Value, value::RawValue};

/// The most fields of an object that are left out before it is given up.
const MAX_LEFT_OUT: usize = 8;
/// The parts of an object that consist of fields, rather than being one.
const PARTS: [&str; 3] = ["metadata", "spec", "status"];

/// An object, and what of it could not be read.
pub(crate) struct Partial<W> {
    pub(crate) object: W,
    pub(crate) left_out: Vec<Rejection>,
}

impl<'de, W: Input> Deserialize<'de> for Partial<W> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        match serde_json::from_str(raw.get()) {
            Ok(object) => Ok(Self {
                object,
                left_out: Vec::new(),
            }),
            Err(error) => Self::salvage(raw).ok_or_else(|| match W::KIND {
                // The parser quotes what it could not read.
                Kind::Secret => D::Error::custom("not a Secret"),
                _ => D::Error::custom(error),
            }),
        }
    }
}

impl<W: Input> Partial<W> {
    fn salvage(raw: &RawValue) -> Option<Self> {
        let mut value: Value = serde_json::from_str(raw.get()).ok()?;
        let mut left_out = Vec::new();
        for _ in 0..MAX_LEFT_OUT {
            let Err(wrong) = W::KIND.read(&value, "") else {
                let object = serde_json::from_value(value).ok()?;
                return Some(Self { object, left_out });
            };
            let path = leave_out(&mut value, &wrong.path)?;
            let message = match W::KIND {
                Kind::Secret => "cannot be read and was left out".to_owned(),
                _ => format!("cannot be read and was left out: {wrong}"),
            };
            left_out.push(Rejection {
                path,
                code: Code::Invalid,
                message,
            });
        }
        None
    }
}

/// Takes the field out that `path` leads into, and says which it was; none if there is nothing to take.
fn leave_out(object: &mut Value, path: &str) -> Option<String> {
    let mut names = path
        .split('.')
        .map(|part| part.split('[').next().unwrap_or_default());
    let (outer, inner) = (names.next()?, names.next().unwrap_or_default());
    let fields = object.as_object_mut()?;
    match fields.get_mut(outer) {
        Some(Value::Object(part)) if PARTS.contains(&outer) && part.contains_key(inner) => {
            if outer == "metadata" && ["name", "namespace"].contains(&inner) {
                return None;
            }
            part.remove(inner);
            return Some(format!("{outer}.{inner}"));
        }
        Some(_) if !["metadata", "spec"].contains(&outer) => {
            fields.remove(outer);
            return Some(outer.to_owned());
        }
        Some(_) | None => {}
    }
    // A kind of ours cannot do without a spec, be there nothing in it.
    let empty = Value::Object(Map::new());
    if outer == "metadata" || fields.get("spec") == Some(&empty) {
        return None;
    }
    fields.insert("spec".to_owned(), empty);
    Some("spec".to_owned())
}

impl<W: Resource<DynamicType = ()>> Resource for Partial<W> {
    type DynamicType = ();
    /// The scope is known from the kind where it matters.
    type Scope = DynamicResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        W::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        W::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        W::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        W::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        self.object.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.object.meta_mut()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Pod, Secret};
    use serde_json::json;

    use super::*;

    fn read<W: Input>(object: &Value) -> Result<Partial<W>, String> {
        serde_json::from_str(&object.to_string()).map_err(|error| error.to_string())
    }

    fn left_out<W: Input>(object: &Value) -> Vec<String> {
        let partial: Partial<W> = read(object).unwrap();
        partial.left_out.into_iter().map(|it| it.path).collect()
    }

    #[test]
    fn an_object_of_the_right_shape_is_read_in_full() {
        let pod = json!({ "metadata": { "name": "a" }, "spec": { "containers": [] } });
        let partial: Partial<Pod> = read(&pod).unwrap();
        assert!(partial.left_out.is_empty());
        assert_eq!(partial.meta().name.as_deref(), Some("a"));
    }

    #[test]
    fn each_field_that_is_in_the_way_is_left_out_whole() {
        let pod = json!({
            "metadata": { "name": "a", "labels": { "app.kubernetes.io/name": 5, "app": "a" } },
            "spec": { "containers": [], "nodeName": "n", "volumes": [{ "name": 5 }] },
            "status": "running",
        });
        let partial: Partial<Pod> = read(&pod).unwrap();
        let paths: Vec<_> = partial.left_out.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(paths, ["metadata.labels", "spec.volumes", "status"]);
        assert_eq!(partial.object.spec.unwrap().node_name.as_deref(), Some("n"));
    }

    #[test]
    fn a_spec_that_is_missing_or_none_is_empty() {
        for spec in [json!("text"), json!([1]), Value::Null] {
            let policy = json!({ "metadata": { "name": "a" }, "spec": spec });
            assert_eq!(left_out::<ferromesh_crds::AccessPolicy>(&policy), ["spec"]);
        }
        let policy = json!({ "metadata": { "name": "a" } });
        assert_eq!(left_out::<ferromesh_crds::AccessPolicy>(&policy), ["spec"]);
    }

    #[test]
    fn what_has_no_name_is_not_read() {
        for object in [
            json!("text"),
            json!({ "metadata": { "name": 5 } }),
            json!({ "metadata": { "name": "a", "namespace": 5 } }),
        ] {
            assert!(read::<Pod>(&object).is_err(), "{object}");
        }
    }

    #[test]
    fn an_error_about_a_secret_does_not_quote_it() {
        let partial: Partial<Secret> =
            read(&json!({ "metadata": { "name": "a" }, "data": { "key": "hunter2!" } })).unwrap();
        let [left_out] = &*partial.left_out else {
            panic!("the data is left out");
        };
        assert_eq!(left_out.path, "data");
        assert!(!left_out.message.contains("hunter2"), "{left_out}");

        let error = read::<Secret>(&json!({ "metadata": { "name": ["hunter2"] } })).err();
        assert!(!error.unwrap().contains("hunter2"));
    }
}
