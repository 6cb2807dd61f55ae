//! `translate`: what objects of the management cluster come to.

use clap::Args;
use ferromesh_core::report::Report;
use ferromesh_core::{Change, State, state};

use crate::args::{Files, Form, Global};
use crate::error::{Error, Outcome};
use crate::render::{Screen, counted};
use crate::source::{self, Cluster, Reading};

/// Show the objects and statuses that follow from objects of the management cluster
///
/// Policies, virtual meshes, settings, and the meshes, workloads and destinations that discovery
/// wrote are read from files. No cluster is needed. The output is one document: `outputs`, sorted
/// by cluster, kind, namespace and name, and `statuses`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    files: Files,

    /// How the document is written
    #[arg(short, long, value_enum, default_value = "yaml")]
    output: Form,
}

pub(crate) fn run(
    global: &Global,
    arguments: &Arguments,
    screen: &mut Screen,
) -> Result<Outcome, Error> {
    let reading = source::read(&arguments.files.filename, management(global))?;
    let outcome = tell(&reading, global, screen);
    let (state, _) = state(global).step(upserts(reading));
    screen.report(arguments.output, &Report::translation(&state))?;
    Ok(outcome)
}

/// A state that knows nothing but the namespace of the management plane.
pub(super) fn state(global: &Global) -> State {
    State::new(state::Options {
        namespace: global.namespace.to_string(),
        is_told_at_once: true,
        ..state::Options::default()
    })
}

/// The cluster that files without any other tell about.
pub(super) fn management(global: &Global) -> Cluster<'_> {
    Cluster::Management {
        namespace: &global.namespace,
    }
}

/// What was read, as changes.
pub(super) fn upserts(reading: Reading) -> impl Iterator<Item = Change> {
    let objects = reading.objects.into_values();
    objects.map(|located| Change::Upsert(located.object))
}

/// Tells on stderr what could not be read, and what is perhaps not meant.
pub(super) fn tell(reading: &Reading, global: &Global, screen: &mut Screen) -> Outcome {
    for doubt in &reading.doubts {
        screen.note(format_args!("warning: {doubt}"));
    }
    for fault in &reading.faults {
        screen.note(format_args!("error: {fault}"));
    }
    count(reading, global, screen);
    if reading.faults.is_empty() {
        Outcome::Clean
    } else {
        Outcome::Findings
    }
}

/// Tells on stderr how much was read, whoever wants to know.
pub(super) fn count(reading: &Reading, global: &Global, screen: &mut Screen) {
    if global.verbose {
        let (read, ignored) = (reading.objects.len(), reading.ignored);
        screen.note(format_args!(
            "{} read, {} of other kinds passed over",
            counted(read, "object"),
            counted(ignored, "document")
        ));
    }
}
