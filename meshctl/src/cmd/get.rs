//! `get`: objects of a kind, one line each.

mod columns;

use clap::{Args, ValueEnum};
use k8s_openapi::jiff::Timestamp;
use kube::core::DynamicObject;
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{Form, Global};
use crate::error::{Error, Outcome};
use crate::kind::Shown;
use crate::management::{Management, Scope};
use crate::render::{Screen, table};

/// List objects, with what became of them
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) selection: Selection,

    /// How they are written
    #[arg(short, long, value_enum, default_value = "table")]
    output: Style,

    /// Leave the titles of the columns out
    #[arg(long)]
    no_headers: bool,
}

/// Which objects are meant.
#[derive(Args, Debug)]
pub(crate) struct Selection {
    /// The kind, its plural or its short name
    #[arg(value_enum, ignore_case = true, hide_possible_values = false)]
    pub(super) kind: Shown,

    /// Names; all objects when left out
    #[arg(value_name = "NAME")]
    pub(super) names: Vec<String>,

    /// Look in all namespaces
    #[arg(short = 'A', long, conflicts_with = "names")]
    pub(super) all_namespaces: bool,

    /// Only what belongs to this managed cluster
    #[arg(long, value_name = "NAME", conflicts_with = "names")]
    pub(super) cluster: Option<String>,

    /// Only objects whose name contains one of these texts
    #[arg(
        short,
        long,
        value_name = "TEXT",
        conflicts_with = "names",
        value_delimiter = ','
    )]
    pub(super) search: Vec<String>,
}

/// How objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Style {
    /// One line for each
    Table,
    /// One line for each, with more columns
    Wide,
    /// The objects themselves, for programs
    Json,
    /// The objects themselves, for people
    Yaml,
    /// `kind/name`, for scripts
    Name,
}

/// Objects as `kubectl` writes several of them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List {
    api_version: &'static str,
    kind: &'static str,
    metadata: Value,
    items: Vec<DynamicObject>,
}

impl Selection {
    /// The objects that are meant. Of a name that leads nowhere it is told, and the others are
    /// found all the same.
    pub(super) async fn objects(
        &self,
        management: &Management,
        screen: &mut Screen,
    ) -> Result<(Vec<DynamicObject>, Outcome), Error> {
        if !self.names.is_empty() {
            let (mut found, mut outcome) = (Vec::new(), Outcome::Clean);
            for name in &self.names {
                match management.find(self.kind, name).await {
                    Ok(object) => found.push(object),
                    Err(error @ Error::Missing { .. }) => {
                        outcome = Outcome::Findings;
                        screen.note(format_args!("error: {error}"));
                    }
                    Err(error) => return Err(error),
                }
            }
            return Ok((found, outcome));
        }
        let scope = if self.all_namespaces {
            Scope::All
        } else {
            Scope::Own
        };
        let mut found = management.list(self.kind, scope).await?;
        found.retain(|object| self.means(object));
        Ok((found, Outcome::Clean))
    }

    fn means(&self, object: &DynamicObject) -> bool {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let searched = self.search.iter().any(|text| name.contains(text.as_str()));
        if !searched && !self.search.is_empty() {
            return false;
        }
        self.cluster.as_ref().is_none_or(|cluster| {
            let object = value(object);
            self.kind.cluster(&object) == Some(cluster)
        })
    }

    /// What is told when there is nothing.
    pub(super) fn nothing(&self, management: &Management) -> String {
        let place = if self.all_namespaces {
            "any namespace".to_owned()
        } else {
            format!("namespace {}", management.namespace)
        };
        format!("no such {} in {place}", self.kind.resource().kind)
    }
}

pub(crate) async fn run(
    global: &Global,
    arguments: &Arguments,
    screen: &mut Screen,
) -> Result<Outcome, Error> {
    let Arguments {
        selection,
        output,
        no_headers,
    } = arguments;
    let management = Management::connect(global, screen).await?;
    let (objects, outcome) = selection.objects(&management, screen).await?;
    if objects.is_empty() && outcome == Outcome::Findings {
        return Ok(outcome);
    }
    match output {
        Style::Json => write(Form::Json, selection, objects, screen)?,
        Style::Yaml => write(Form::Yaml, selection, objects, screen)?,
        Style::Name => {
            let kind = selection.kind.resource().kind.to_lowercase();
            for object in &objects {
                let name = object.metadata.name.as_deref().unwrap_or_default();
                screen.line(format_args!("{kind}/{name}"))?;
            }
        }
        Style::Table | Style::Wide if objects.is_empty() => {
            screen.note(selection.nothing(&management));
        }
        Style::Table | Style::Wide => {
            let columns: Vec<_> = columns::of(selection.kind)
                .into_iter()
                .filter(|column| match column.shown {
                    columns::When::Always => true,
                    columns::When::Wide => *output == Style::Wide,
                    columns::When::AllNamespaces => selection.all_namespaces,
                })
                .collect();
            let titles: Vec<_> = columns.iter().map(|column| column.title).collect();
            let now = Timestamp::now();
            let rows = objects.iter().map(value).map(|object| {
                let cells = columns.iter().map(|column| (column.cell)(&object, now));
                cells.collect()
            });
            let rows = rows.collect();
            screen.line(table::columns((!no_headers).then_some(&titles), rows))?;
        }
    }
    Ok(outcome)
}

fn write(
    form: Form,
    selection: &Selection,
    mut objects: Vec<DynamicObject>,
    screen: &mut Screen,
) -> Result<(), Error> {
    if let ([_], 1) = (&*selection.names, objects.len())
        && let Some(object) = objects.pop()
    {
        return screen.document(form, &object);
    }
    let list = List {
        api_version: "v1",
        kind: "List",
        metadata: json!({}),
        items: objects,
    };
    screen.document(form, &list)
}

/// An object as JSON, to be looked into.
pub(super) fn value(object: &DynamicObject) -> Value {
    serde_json::to_value(object).expect("an object is JSON")
}
