//! What the API servers of the test bed tell of writes, in their audit logs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use ferromesh_e2e::kubeconfigs;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

/// One request that has changed something.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    /// The process that has sent it, as it is called in the lease.
    pub(crate) who: String,
    pub(crate) verb: String,
    /// Cluster, resource, namespace, name.
    pub(crate) object: String,
    /// When it arrived at the API server, and when it was answered.
    pub(crate) begun: Timestamp,
    pub(crate) ended: Timestamp,
}

/// Every write of a server to any cluster since then. None is one of those that every replica does: the
/// lease, the webhook's certificate and its registration.
pub(crate) fn writes(since: Timestamp) -> Vec<Write> {
    let mut writes = Vec::new();
    for (cluster, kubeconfig) in kubeconfigs().iter().enumerate() {
        let log = Path::new(kubeconfig).with_file_name("audit.jsonl");
        let log = File::open(log).expect("hack/testbed up --audit has the API servers write it");
        for line in BufReader::new(log).lines() {
            // An API server that was killed may have left half a line.
            let Ok(event) = serde_json::from_str::<Value>(&line.unwrap()) else {
                continue;
            };
            writes.extend(read(cluster, &event).filter(|write| write.begun >= since));
        }
    }
    writes.sort_by_key(|write| write.begun);
    writes
}

fn read(cluster: usize, event: &Value) -> Option<Write> {
    let text = |path: &str| event.pointer(path).and_then(Value::as_str);
    let (_, who) = text("/userAgent")?.split_once("ferromesh/")?;
    let who = who.split_once('(')?.1.trim_end_matches(')').to_owned();
    let verb = text("/verb")?;
    let resource = text("/objectRef/resource")?;
    let name = text("/objectRef/name").unwrap_or_default();
    let is_write = ["create", "update", "patch", "delete"].contains(&verb);
    let is_trial = text("/requestURI")?.contains("dryRun=");
    let is_everybodys = ["leases", "tokenreviews", "subjectaccessreviews"].contains(&resource)
        || resource.ends_with("webhookconfigurations")
        || (resource == "secrets" && name == "ferromesh-webhook");
    let has_written = event.pointer("/responseStatus/code")?.as_i64()? < 300;
    if !is_write || is_trial || is_everybodys || !has_written {
        return None;
    }
    let namespace = text("/objectRef/namespace").unwrap_or_default();
    Some(Write {
        who,
        verb: verb.to_owned(),
        object: format!("{cluster} {resource} {namespace}/{name}"),
        begun: text("/requestReceivedTimestamp")?.parse().ok()?,
        ended: text("/stageTimestamp")?.parse().ok()?,
    })
}

/// Writes of one process that arrived after another process had begun to write, anywhere.
pub(crate) fn overlaps(writes: &[Write]) -> Vec<String> {
    let mut terms: BTreeMap<&str, (Timestamp, Timestamp)> = BTreeMap::new();
    for write in writes {
        let term = terms
            .entry(&write.who)
            .or_insert((write.begun, write.ended));
        term.1 = term.1.max(write.ended);
    }
    let mut found = Vec::new();
    for write in writes {
        for (who, (first, _)) in &terms {
            let began_later = *first > terms[write.who.as_str()].0;
            if *who != write.who && began_later && write.ended > *first {
                found.push(format!(
                    "{} of {} by {} from {} to {}, after {who} had begun at {first}",
                    write.verb, write.object, write.who, write.begun, write.ended
                ));
            }
        }
    }
    found
}
