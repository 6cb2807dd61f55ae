//! `check`: whether what was installed works.

mod policy;
mod server;

use std::fmt;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use ferromesh_core::model::duration;
use serde::Serialize;

use crate::args::{Form, Global};
use crate::error::{Error, Outcome};
use crate::management::Management;
use crate::render::Screen;

/// Check that the management plane is reachable, complete and content
///
/// Each check has an id that does not change: K1 API server, K3 definitions, D3 webhook, R1
/// registered clusters, P1 policies, F1 trust, F2 gateways. Ends with 1 when one fails, with 3 when
/// the cluster does not answer or refuses to, with 4 when one still fails after --wait.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// How the answers are written
    #[arg(short, long, value_enum, default_value = "text")]
    output: Style,

    /// Check again until everything passes, for so long at most
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    wait: Option<Duration>,

    /// Only these checks, by id
    #[arg(
        long,
        value_name = "ID",
        value_enum,
        ignore_case = true,
        value_delimiter = ','
    )]
    only: Vec<Id>,

    /// All but these checks, by id
    #[arg(
        long,
        value_name = "ID",
        value_enum,
        ignore_case = true,
        value_delimiter = ','
    )]
    skip: Vec<Id>,
}

/// How answers are written.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Style {
    /// For people
    Text,
    /// For programs
    Json,
}

/// A check. Its id does not change: scripts name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "UPPERCASE")]
#[value(rename_all = "UPPER")]
enum Id {
    /// The API server answers, with a version that is supported
    K1,
    /// The definitions of all kinds are there and served
    K3,
    /// The webhook is registered, and answers
    D3,
    /// Each registered cluster has a credential, and is reached
    R1,
    /// Policies are accepted
    P1,
    /// Virtual meshes share trust
    F1,
    /// East-west gateways have addresses
    F2,
}

/// How often everything is checked again while waiting.
const PERIOD: Duration = Duration::from_secs(2);

/// Everything that was checked.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    api_version: &'static str,
    kind: &'static str,
    server: String,
    passed: bool,
    checks: Vec<Check>,
}

/// What came of a check.
#[derive(Serialize)]
struct Check {
    id: Id,
    title: &'static str,
    verdict: Verdict,
    /// What was seen, where nothing is wrong.
    #[serde(skip_serializing_if = "String::is_empty")]
    detail: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Finding>,
    /// Whether it failed because the cluster did not answer, or refused to.
    #[serde(skip)]
    is_unanswered: bool,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Pass,
    Fail,
    /// There is nothing to check, or another check has to pass first.
    Skip,
}

/// Something that is wrong.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Finding {
    /// What it concerns.
    subject: String,
    problem: String,
    /// What to do about it.
    remedy: String,
}

/// What a check has seen: something to tell, or what is wrong.
enum Seen {
    Fine(String),
    Nothing(&'static str),
    Wrong(Vec<Finding>),
}

impl Id {
    const fn title(self) -> &'static str {
        match self {
            Self::K1 => "API server reachable and of a supported version",
            Self::K3 => "custom resource definitions present and established",
            Self::D3 => "admission webhook registered and answering",
            Self::R1 => "registered clusters have credentials and are reached",
            Self::P1 => "policies accepted and observed",
            Self::F1 => "virtual meshes share trust",
            Self::F2 => "east-west gateways have addresses",
        }
    }
}

impl Finding {
    fn new(
        subject: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            subject: subject.into(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

impl Seen {
    /// Wrong where there are findings, otherwise fine.
    fn of(findings: Vec<Finding>, fine: impl Into<String>) -> Self {
        if findings.is_empty() {
            Self::Fine(fine.into())
        } else {
            Self::Wrong(findings)
        }
    }
}

pub(crate) async fn run(
    global: &Global,
    arguments: &Arguments,
    screen: &mut Screen,
) -> Result<Outcome, Error> {
    let ids: Vec<Id> = Id::value_variants()
        .iter()
        .copied()
        .filter(|id| arguments.only.is_empty() || arguments.only.contains(id))
        .filter(|id| !arguments.skip.contains(id))
        .collect();
    if ids.is_empty() {
        return Err(Error::Usage {
            argument: "--skip".to_owned(),
            problem: "leaves no check: leave one of the ids out",
        });
    }
    let management = Management::connect(global, screen).await?;
    let deadline = arguments.wait.map(|wait| Instant::now() + wait);
    let mut report = all(&ids, &management).await;
    while !report.passed
        && let Some(left) = deadline.map(|deadline| deadline - Instant::now())
        && !left.is_zero()
    {
        screen.note(format_args!("waiting for {}", report.failing()));
        tokio::time::sleep(PERIOD.min(left)).await;
        report = all(&ids, &management).await;
    }
    match arguments.output {
        Style::Json => screen.document(Form::Json, &report)?,
        Style::Text => screen.line(&report)?,
    }
    Ok(match (report.passed, deadline) {
        (true, _) => Outcome::Clean,
        (false, Some(_)) => Outcome::TimedOut,
        (false, None) if report.failures().all(|check| check.is_unanswered) => Outcome::Unanswered,
        (false, None) => Outcome::Findings,
    })
}

async fn all(ids: &[Id], management: &Management) -> Report {
    let mut checks: Vec<Check> = Vec::new();
    for id in ids {
        let failed = |id| {
            let mut failed = checks.iter().filter(|check| check.verdict == Verdict::Fail);
            failed.any(|check| check.id == id)
        };
        // What a check could only repeat is said once.
        let seen = match id {
            Id::K1 => one(*id, management).await,
            _ if failed(Id::K1) => Ok(Seen::Nothing("K1 has to pass first")),
            Id::R1 | Id::P1 | Id::F1 | Id::F2 if failed(Id::K3) => {
                Ok(Seen::Nothing("K3 has to pass first"))
            }
            _ => one(*id, management).await,
        };
        checks.push(Check::new(*id, seen));
    }
    Report {
        api_version: "cli.mesh/v1",
        kind: "Check",
        server: management.server.clone(),
        passed: checks.iter().all(|check| check.verdict != Verdict::Fail),
        checks,
    }
}

async fn one(id: Id, management: &Management) -> Result<Seen, Error> {
    match id {
        Id::K1 => server::version(management).await,
        Id::K3 => server::definitions(management).await,
        Id::D3 => server::webhook(management).await,
        Id::R1 => server::clusters(management).await,
        Id::P1 => policy::accepted(management).await,
        Id::F1 => policy::trust(management).await,
        Id::F2 => policy::gateways(management).await,
    }
}

impl Check {
    fn new(id: Id, seen: Result<Seen, Error>) -> Self {
        let is_unanswered = seen.is_err();
        let (verdict, detail, findings) = match seen {
            Ok(Seen::Fine(detail)) => (Verdict::Pass, detail, Vec::new()),
            Ok(Seen::Nothing(why)) => (Verdict::Skip, why.to_owned(), Vec::new()),
            Ok(Seen::Wrong(findings)) => (Verdict::Fail, String::new(), findings),
            Err(error) => {
                let problem = ferromesh_runtime::telemetry::Chain(&error).to_string();
                let remedy = "see whether this is the right context, its API server is up, and you may read this there";
                let finding = Finding::new("management cluster", problem, remedy);
                (Verdict::Fail, String::new(), vec![finding])
            }
        };
        Self {
            id,
            title: id.title(),
            verdict,
            detail,
            findings,
            is_unanswered,
        }
    }
}

impl Report {
    fn failures(&self) -> impl Iterator<Item = &Check> {
        let checks = self.checks.iter();
        checks.filter(|check| check.verdict == Verdict::Fail)
    }

    fn failing(&self) -> String {
        let ids: Vec<_> = self
            .failures()
            .map(|check| format!("{:?}", check.id))
            .collect();
        ids.join(", ")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for check in &self.checks {
            writeln!(f, "{check}")?;
        }
        let count = |verdict| {
            let of = self.checks.iter().filter(|check| check.verdict == verdict);
            of.count()
        };
        write!(
            f,
            "\n{} passed, {} failed, {} skipped",
            count(Verdict::Pass),
            count(Verdict::Fail),
            count(Verdict::Skip)
        )
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.verdict {
            Verdict::Pass => "ok  ",
            Verdict::Fail => "FAIL",
            Verdict::Skip => "skip",
        };
        write!(f, "{word}  {:?}  {}", self.id, self.title)?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        for (at, finding) in self.findings.iter().enumerate() {
            let Finding {
                subject,
                problem,
                remedy,
            } = finding;
            write!(f, "\n        {subject}: {problem}")?;
            // What helps against several in a row is said below the last of them.
            let next = self.findings.get(at + 1);
            if next.is_none_or(|next| next.remedy != *remedy) {
                write!(f, "\n          remedy: {remedy}")?;
            }
        }
        Ok(())
    }
}
