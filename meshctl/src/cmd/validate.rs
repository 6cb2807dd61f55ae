//! `validate`: what an API server would answer to each object, were all the others there.

use std::fmt;

use clap::{Args, ValueEnum};
use ferromesh_core::review::{self, Candidate, Intent, Remark, Review, Weight};
use ferromesh_core::{Change, Code, Kind, Scope, State};
use serde::Serialize;

use super::translate::{count, management, state};
use crate::args::{Files, Form, Global};
use crate::error::{Error, Outcome};
use crate::render::{Screen, counted};
use crate::source::{self, Doubt, Fault, Located, Place, Reading};

/// Judge each policy, virtual mesh and settings in files against all other objects there
///
/// The answers are those that `kubectl apply` would get. The files are all there is: a reference
/// to what is not in them leads nowhere. No cluster is needed. Ends with 1 when an object would be
/// refused or cannot be read; with --strict, when there is a warning, too.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    files: Files,

    /// How the answers are written
    #[arg(short, long, value_enum, default_value = "text")]
    output: Style,

    /// Take warnings for findings, too
    #[arg(long)]
    strict: bool,
}

/// How answers are written.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Style {
    /// For people
    Text,
    /// For programs
    Json,
}

/// Everything that was judged.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Validation {
    api_version: &'static str,
    kind: &'static str,
    summary: Summary,
    /// By kind, namespace and name.
    objects: Vec<Judged>,
    unreadable: Vec<Unreadable>,
    /// What is perhaps not meant, and is of no judged object.
    warnings: Vec<Dubious>,
}

/// How many of each.
#[derive(Default, Serialize)]
struct Summary {
    /// Objects that were judged.
    judged: usize,
    /// Those that would be refused.
    denied: usize,
    /// Those that would be let through with a warning.
    warned: usize,
    /// Documents that could not be read.
    unreadable: usize,
}

/// One object and the answer to it.
#[derive(Serialize)]
struct Judged {
    #[serde(flatten)]
    place: Place,
    kind: &'static str,
    namespace: String,
    name: String,
    allowed: bool,
    denials: Vec<Denial>,
    warnings: Vec<Warning>,
}

/// Why an object would be refused.
#[derive(Serialize)]
struct Denial {
    reason: &'static str,
    /// None where it is not one field alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'static str>,
}

/// What would be said about an object.
#[derive(Serialize)]
struct Warning {
    weight: &'static str,
    message: String,
    #[serde(skip)]
    is_serious: bool,
}

/// Something that could not be read.
#[derive(Serialize)]
struct Unreadable {
    #[serde(flatten)]
    place: Place,
    /// None where it is not even known which it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<String>,
    /// None where it is not one field alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

/// Something about a place.
#[derive(Serialize)]
struct Dubious {
    #[serde(flatten)]
    place: Place,
    message: String,
}

pub(crate) fn run(
    global: &Global,
    arguments: &Arguments,
    screen: &mut Screen,
) -> Result<Outcome, Error> {
    let reading = source::read(&arguments.files.filename, management(global))?;
    count(&reading, global, screen);
    let validation = judge(reading, state(global));
    match arguments.output {
        Style::Json => screen.document(Form::Json, &validation)?,
        Style::Text => screen.line(&validation)?,
    }
    let Summary {
        denied,
        warned,
        unreadable,
        ..
    } = validation.summary;
    let warned = warned + validation.warnings.len();
    let is_clean = denied + unreadable == 0 && !(arguments.strict && warned > 0);
    Ok(if is_clean {
        Outcome::Clean
    } else {
        Outcome::Findings
    })
}

/// Judges each object that people write against all the others.
fn judge(reading: Reading, nothing: State) -> Validation {
    let located = reading.objects.values();
    let upserts = located.map(|located| Change::Upsert(located.object.clone()));
    let (all, _) = nothing.step(upserts.chain(listed()));
    let objects = reading.objects.into_values();
    let mut objects: Vec<_> = objects
        .filter_map(|located| Judged::new(located, &all))
        .collect();
    objects.sort_by(|left, right| left.sort_key().cmp(&right.sort_key()));
    let unreadable: Vec<_> = reading.faults.into_iter().map(Unreadable::from).collect();
    Validation {
        api_version: "cli.mesh/v1",
        kind: "Validation",
        summary: Summary {
            judged: objects.len(),
            denied: objects.iter().filter(|it| !it.allowed).count(),
            warned: objects.iter().filter(|it| it.is_warned()).count(),
            unreadable: unreadable.len(),
        },
        objects,
        unreadable,
        warnings: reading.doubts.into_iter().map(Dubious::from).collect(),
    }
}

/// Says that the management cluster has nothing but what was read.
fn listed() -> impl Iterator<Item = Change> {
    let kinds = Kind::ALL.iter().copied().filter(|kind| match kind.scope() {
        Scope::Management | Scope::Everywhere => true,
        Scope::Managed | Scope::Files => false,
    });
    kinds.map(|kind| Change::Synced {
        cluster: "".into(),
        kind,
    })
}

impl Judged {
    /// The answer to the creation of an object where everything else is there already; none for
    /// what is not judged.
    fn new(located: Located, all: &State) -> Option<Self> {
        let Located {
            place,
            object,
            wire,
        } = located;
        let candidate = Candidate::new(object.kind(), Intent::Create(wire?))?;
        let mut review = Review::new(all, candidate);
        while !review.advance(usize::MAX) {}
        let outcome = review.finish();
        let key = object.key();
        Some(Self {
            place,
            kind: object.kind().name(),
            namespace: key.namespace().to_owned(),
            name: key.name().to_owned(),
            allowed: outcome.is_allowed(),
            denials: outcome.denials.into_iter().map(Denial::from).collect(),
            warnings: outcome.remarks.into_iter().map(Warning::from).collect(),
        })
    }

    fn sort_key(&self) -> (&str, &str, &str) {
        (self.kind, &self.namespace, &self.name)
    }

    fn is_warned(&self) -> bool {
        self.allowed && self.warnings.iter().any(|warning| warning.is_serious)
    }
}

impl From<review::Denial> for Denial {
    fn from(denial: review::Denial) -> Self {
        Self {
            reason: match denial.code {
                Code::Invalid => "Invalid",
                Code::Required => "Required",
                Code::Unsupported => "Unsupported",
                Code::TooLarge => "TooLarge",
                Code::NotFound => "NotFound",
                Code::Conflicted => "Conflicted",
                Code::NotReady => "NotReady",
            },
            remedy: denial.remedy(),
            field: denial.path,
            message: denial.message,
        }
    }
}

impl From<Remark> for Warning {
    fn from(remark: Remark) -> Self {
        let (weight, is_serious) = match remark.weight {
            Weight::Dropped => ("Dropped", true),
            Weight::Unresolved => ("Unresolved", true),
            Weight::Reach => ("Reach", true),
            Weight::Loss => ("Loss", true),
            Weight::Outcome => ("Outcome", false),
            Weight::Hint => ("Hint", false),
        };
        Self {
            weight,
            message: remark.text,
            is_serious,
        }
    }
}

impl From<Fault> for Unreadable {
    fn from(fault: Fault) -> Self {
        let Fault {
            place,
            object,
            field,
            message,
            remedy,
        } = fault;
        Self {
            place,
            object,
            field,
            message,
            remedy,
        }
    }
}

impl From<Doubt> for Dubious {
    fn from(doubt: Doubt) -> Self {
        let Doubt { place, message } = doubt;
        Self { place, message }
    }
}

impl fmt::Display for Validation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for object in &self.objects {
            writeln!(f, "{object}")?;
        }
        for unreadable in &self.unreadable {
            writeln!(f, "{unreadable}")?;
        }
        for Dubious { place, message } in &self.warnings {
            writeln!(f, "{place}\n  warning: {message}\n")?;
        }
        let Summary {
            judged,
            denied,
            warned,
            unreadable,
        } = &self.summary;
        write!(
            f,
            "{} judged: {denied} denied, {warned} let through with warnings; {} unreadable",
            counted(*judged, "object"),
            counted(*unreadable, "document")
        )
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            kind,
            namespace,
            name,
            ..
        } = self;
        writeln!(f, "{place}: {kind} {namespace}/{name}")?;
        for denial in &self.denials {
            writeln!(f, "  {denial}")?;
        }
        for warning in &self.warnings {
            let word = if warning.is_serious {
                "warning"
            } else {
                "note"
            };
            writeln!(f, "  {word}: {}", warning.message)?;
        }
        Ok(())
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            reason,
            field,
            message,
            remedy,
        } = self;
        write!(f, "denied ({reason}): ")?;
        if let Some(field) = field {
            write!(f, "{field}: ")?;
        }
        f.write_str(message)?;
        match remedy {
            Some(remedy) => write!(f, "\n    remedy: {remedy}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            object,
            field,
            message,
            remedy,
        } = self;
        write!(f, "{place}")?;
        if let Some(object) = object {
            write!(f, ": {object}")?;
        }
        f.write_str("\n  unreadable: ")?;
        if let Some(field) = field {
            write!(f, "{field}: ")?;
        }
        writeln!(f, "{message}")?;
        match remedy {
            Some(remedy) => writeln!(f, "    remedy: {remedy}"),
            None => Ok(()),
        }
    }
}
