//! `describe`: what objects say and what became of them, on several lines each.

mod effect;
mod grid;
mod page;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;

use super::get::{Selection, value};
use crate::args::{Form, Global};
use crate::error::{Error, Outcome};
use crate::management::Management;
use crate::render::{Screen, table};

use self::effect::{Effect, Policies};

/// Show objects in full: all of a kind as a table, those that are named one page each
///
/// The page of a destination, workload or mesh tells which policies apply there, which lose, and
/// why.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: Selection,

    /// How they are written
    #[arg(short, long, value_enum, default_value = "text")]
    output: Style,
}

/// How descriptions are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Style {
    /// For people
    Text,
    /// For programs
    Json,
    /// For both
    Yaml,
}

/// An object and what applies to it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Description {
    api_version: &'static str,
    kind: &'static str,
    object: Value,
    /// What policies and virtual meshes say about it in their statuses.
    effects: Vec<Effect>,
}

/// Several of them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<Description>,
}

pub(crate) async fn run(
    global: &Global,
    arguments: &Arguments,
    screen: &mut Screen,
) -> Result<Outcome, Error> {
    let Arguments { selection, output } = arguments;
    let management = Management::connect(global, screen).await?;
    let (objects, outcome) = selection.objects(&management, screen).await?;
    if objects.is_empty() && outcome == Outcome::Findings {
        return Ok(outcome);
    }
    let is_grid = *output == Style::Text && selection.names.is_empty();
    if is_grid {
        if objects.is_empty() {
            screen.note(selection.nothing(&management));
            return Ok(Outcome::Clean);
        }
        let rows = objects.iter().map(value);
        let rows = rows
            .map(|object| grid::row(selection.kind, &object))
            .collect();
        screen.line(table::grid(grid::titles(selection.kind), rows))?;
        return Ok(Outcome::Clean);
    }
    let policies = Policies::about(selection.kind, &management).await?;
    let mut descriptions: Vec<_> = objects
        .iter()
        .map(|object| {
            let object = value(object);
            Description {
                api_version: "cli.mesh/v1",
                kind: "Description",
                effects: policies.on(&object),
                object,
            }
        })
        .collect();
    let form = match output {
        Style::Json => Form::Json,
        Style::Yaml => Form::Yaml,
        Style::Text => {
            let pages: Vec<_> = descriptions
                .iter()
                .map(
                    |Description {
                         object, effects, ..
                     }| page::of(object, effects),
                )
                .collect();
            screen.line(pages.join("\n\n"))?;
            return Ok(outcome);
        }
    };
    if selection.names.len() == 1
        && let Some(description) = descriptions.pop()
    {
        screen.document(form, &description)?;
    } else {
        let list = List {
            api_version: "cli.mesh/v1",
            kind: "DescriptionList",
            items: descriptions,
        };
        screen.document(form, &list)?;
    }
    Ok(outcome)
}
