//! `discover`: the meshes, workloads and destinations of clusters.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;
use ferromesh_core::report::Report;
use ferromesh_core::{Change, Kind, Scope};
use ferromesh_crds::name::ClusterName;

use super::translate::{management, state, tell, upserts};
use crate::args::{Form, Global};
use crate::error::{Error, Outcome};
use crate::render::Screen;
use crate::source::{self, Cluster, STDIN};

/// Show the meshes, workloads and destinations that are found in clusters
///
/// Each cluster is given as a directory of its Kubernetes objects, or several. No cluster is
/// needed. The output is one document in the form of `translate`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// A cluster and the file or directory of its objects; `NAME=-` reads stdin. May be repeated
    #[arg(long, value_name = "NAME=PATH", required = true, num_args = 1..)]
    cluster: Vec<Dump>,

    /// Settings and registered clusters, as the management cluster has them. May be repeated
    #[arg(short, long = "filename", value_name = "PATH", num_args = 1..)]
    filename: Vec<PathBuf>,

    /// How the document is written
    #[arg(short, long, value_enum, default_value = "yaml")]
    output: Form,
}

/// A cluster in files.
#[derive(Clone, Debug)]
struct Dump {
    name: ClusterName,
    path: PathBuf,
}

impl FromStr for Dump {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, path) = text
            .split_once('=')
            .filter(|(_, path)| !path.is_empty())
            .ok_or("write the name of a cluster and its directory: NAME=PATH")?;
        let name = ClusterName::from_str(name).map_err(|error| error.to_string())?;
        let path = path.into();
        Ok(Self { name, path })
    }
}

pub(crate) fn run(
    global: &Global,
    arguments: &Arguments,
    screen: &mut Screen,
) -> Result<Outcome, Error> {
    let clusters = arguments.clusters()?;
    let mut outcome = Outcome::Clean;
    let mut changes = Vec::new();
    if !arguments.filename.is_empty() {
        let files = source::read(&arguments.filename, management(global))?;
        outcome = tell(&files, global, screen);
        changes.extend(upserts(files));
    }
    for (name, paths) in clusters {
        let reading = source::read(&paths, Cluster::Managed(name.as_str()))?;
        if tell(&reading, global, screen) == Outcome::Findings {
            outcome = Outcome::Findings;
        }
        changes.extend(upserts(reading));
        changes.extend(listed(name.as_str()));
    }
    let (state, _) = state(global).step(changes);
    screen.report(arguments.output, &Report::discovery(&state))?;
    Ok(outcome)
}

impl Arguments {
    /// The clusters, each with all its paths.
    fn clusters(&self) -> Result<BTreeMap<&ClusterName, Vec<PathBuf>>, Error> {
        let mut clusters: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for Dump { name, path } in &self.cluster {
            clusters.entry(name).or_default().push(path.clone());
        }
        let takes_stdin = |paths: &&Vec<PathBuf>| paths.iter().any(|path| path == Path::new(STDIN));
        let takers = clusters.values().chain([&self.filename]);
        if takers.filter(takes_stdin).count() > 1 {
            return Err(Error::Usage {
                argument: STDIN.to_owned(),
                problem: "stdin can be read as one cluster only: give files for the others",
            });
        }
        Ok(clusters)
    }
}

/// Says that a managed cluster has nothing but what was read.
fn listed(cluster: &str) -> impl Iterator<Item = Change> {
    let cluster: Arc<str> = cluster.into();
    let kinds = Kind::ALL.iter().copied().filter(|kind| match kind.scope() {
        Scope::Managed | Scope::Everywhere => true,
        Scope::Management | Scope::Files => false,
    });
    kinds.map(move |kind| Change::Synced {
        cluster: Arc::clone(&cluster),
        kind,
    })
}
