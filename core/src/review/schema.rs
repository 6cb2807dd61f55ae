//! The schemas of our kinds, as API servers have them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

use crate::kinds::Kind;

/// By group and kind. Making them takes tens of milliseconds.
static SCHEMAS: LazyLock<BTreeMap<(String, String), JSONSchemaProps>> = LazyLock::new(|| {
    ferromesh_crds::all()
        .into_iter()
        .filter_map(|definition| {
            let spec = definition.spec;
            let schema = spec.versions.into_iter().next()?.schema?;
            Some(((spec.group, spec.names.kind), schema.open_api_v3_schema?))
        })
        .collect()
});

/// Makes the schemas, if nobody has.
pub(super) fn prepare() {
    LazyLock::force(&SCHEMAS);
}

/// What a schema says of a member of an object.
pub(super) enum Member<'a> {
    /// It is of this form.
    Known(&'a JSONSchemaProps),
    /// It may be anything.
    Any,
    /// There is none of this name.
    Unknown,
}

/// The schema of a kind of ours.
pub(super) fn of(kind: Kind) -> Option<&'static JSONSchemaProps> {
    SCHEMAS.get(&(kind.group().into_owned(), kind.name().to_owned()))
}

/// What a schema says of the member of this name (Kubernetes: custom resources, "Field pruning").
pub(super) fn member<'a>(schema: &'a JSONSchemaProps, name: &str) -> Member<'a> {
    if let Some(member) = schema.properties.as_ref().and_then(|it| it.get(name)) {
        return Member::Known(member);
    }
    match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(schema)) => Member::Known(schema),
        Some(JSONSchemaPropsOrBool::Bool(true)) => Member::Any,
        _ if schema.x_kubernetes_preserve_unknown_fields == Some(true) => Member::Any,
        _ => Member::Unknown,
    }
}

/// The schema of the items of a list.
pub(super) fn item(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.items.as_ref()? {
        JSONSchemaPropsOrArray::Schema(item) => Some(item),
        JSONSchemaPropsOrArray::Schemas(_) => None,
    }
}
