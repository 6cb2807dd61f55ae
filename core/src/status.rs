//! Statuses: what is said to the people who wrote an object.
//!
//! A status is worked out when somebody asks for it, from values that are there already. It is
//! bounded: errors come first, then the order of keys, and what finds no room is counted.
//! Conditions leave this room without times; whoever writes them knows what stood there before.

pub(crate) mod caller;
mod destination;
mod mesh;
mod policy;
mod virtual_mesh;

use std::collections::BTreeMap;

use ferromesh_crds as crds;
use ferromesh_crds::approval::{ApprovalState, ApprovalStatus};
use ferromesh_crds::condition;
use serde::Serialize;
use serde_json::Value;

use crate::delta::{StatusKey, StatusKind};
use crate::diagnose::{Code, Finding};
use crate::key::Key;
use crate::state::State;

/// Most bytes that the lists of one status may take, as JSON: 8 KB without what else there is,
/// two conditions with a long message each above all.
const BUDGET: usize = 6_200;
/// Most bytes of one message, as JSON.
const MAX_MESSAGE: usize = 600;

/// What is said of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The fields of the compatible API; conditions are empty.
    pub body: Body,
    /// Conditions, without times.
    pub conditions: Vec<condition::Finding>,
}

/// The fields of a status.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "each is the status of the kind of its name")]
pub enum Body {
    AccessPolicy(crds::AccessPolicyStatus),
    Destination(Box<crds::DestinationStatus>),
    Mesh(Box<crds::MeshStatus>),
    Settings(crds::SettingsStatus),
    TrafficPolicy(crds::TrafficPolicyStatus),
    VirtualMesh(crds::VirtualMeshStatus),
    Workload(crds::WorkloadStatus),
}

impl Status {
    /// The status as JSON, conditions without times.
    pub fn to_json(&self) -> Value {
        let mut json = serde_json::to_value(&self.body).expect("statuses are JSON");
        if let (Value::Object(fields), false) = (&mut json, self.conditions.is_empty()) {
            let conditions = self.conditions.iter().map(|finding| {
                let mut condition = serde_json::Map::new();
                let mut set = |key: &str, value: Value| condition.insert(key.to_owned(), value);
                set("type", finding.kind.as_str().into());
                set("status", finding.status.as_str().into());
                set("reason", finding.reason.as_str().into());
                set("message", finding.message.as_str().into());
                if let Some(generation) = finding.observed_generation {
                    set("observedGeneration", generation.into());
                }
                Value::Object(condition)
            });
            fields.insert("conditions".to_owned(), conditions.collect());
        }
        json
    }
}

impl State {
    /// What is to be said of an object; none where it does not exist.
    pub fn status(&self, of: &StatusKey) -> Option<Status> {
        match of.kind {
            StatusKind::AccessPolicy => policy::access(self, &of.key),
            StatusKind::TrafficPolicy => policy::traffic(self, &of.key),
            StatusKind::VirtualMesh => virtual_mesh::status(self, &of.key),
            StatusKind::Destination => destination::status(self, &of.key),
            StatusKind::Mesh => mesh::status(self, &of.key),
            StatusKind::Workload => {
                let workload = self.workloads().get(&of.key)?;
                let body = Body::Workload(crds::WorkloadStatus {
                    observed_generation: workload.generation,
                    ..crds::WorkloadStatus::default()
                });
                Some(Status {
                    body,
                    conditions: Vec::new(),
                })
            }
            StatusKind::Settings => {
                let settings = self.snapshot.settings.get(&of.key)?;
                let findings: Vec<_> = settings.rejections.iter().map(Finding::from).collect();
                let body = Body::Settings(crds::SettingsStatus {
                    observed_generation: settings.generation,
                    state: state(findings.is_empty()),
                    errors: findings.iter().map(message).collect(),
                    ..crds::SettingsStatus::default()
                });
                Some(Status {
                    body,
                    conditions: conditions(&findings, settings.generation),
                })
            }
        }
    }

    /// Every object that has a status.
    pub fn statuses(&self) -> impl Iterator<Item = StatusKey> {
        let keys = |kind: StatusKind| -> Vec<Key> {
            match kind {
                StatusKind::AccessPolicy => self.snapshot.access_policies.keys().cloned().collect(),
                StatusKind::TrafficPolicy => {
                    self.snapshot.traffic_policies.keys().cloned().collect()
                }
                StatusKind::VirtualMesh => self.snapshot.virtual_meshes.keys().cloned().collect(),
                StatusKind::Settings => self.snapshot.settings.keys().cloned().collect(),
                StatusKind::Destination => self.destinations().keys().cloned().collect(),
                StatusKind::Mesh => self.meshes().keys().cloned().collect(),
                StatusKind::Workload => self.workloads().keys().cloned().collect(),
            }
        };
        StatusKind::ALL.into_iter().flat_map(move |kind| {
            keys(kind)
                .into_iter()
                .map(move |key| StatusKey { kind, key })
        })
    }

    /// Everything that is wrong with an object, on every destination and mesh that it concerns.
    pub fn findings(&self, of: &StatusKey) -> Vec<Finding> {
        match of.kind {
            StatusKind::AccessPolicy => policy::access_findings(self, &of.key),
            StatusKind::TrafficPolicy => policy::traffic_findings(self, &of.key),
            StatusKind::VirtualMesh => virtual_mesh::findings(self, &of.key),
            StatusKind::Settings => self
                .snapshot
                .settings
                .get(&of.key)
                .map(|settings| settings.rejections.iter().map(Finding::from).collect())
                .unwrap_or_default(),
            StatusKind::Destination | StatusKind::Mesh | StatusKind::Workload => Vec::new(),
        }
    }
}

fn state(is_accepted: bool) -> ApprovalState {
    if is_accepted {
        ApprovalState::Accepted
    } else {
        ApprovalState::Invalid
    }
}

/// A message that fits into a status.
fn message(finding: &Finding) -> String {
    let text = finding.to_string();
    let mut room = MAX_MESSAGE;
    for (at, letter) in text.char_indices() {
        let size = match letter {
            '"' | '\\' => 2,
            letter if letter.is_ascii_control() => "\\u0000".len(),
            letter => letter.len_utf8(),
        };
        match room.checked_sub(size) {
            Some(left) => room = left,
            None => return format!("{}…", &text[..at]),
        }
    }
    text
}

/// How much room something takes.
fn size(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |json| json.len())
}

/// `Accepted` and `ResolvedRefs`, as the findings have it.
fn conditions(findings: &[Finding], generation: i64) -> Vec<condition::Finding> {
    let worst = findings.iter().min_by_key(|finding| finding.code);
    let missing = findings
        .iter()
        .find(|finding| finding.code == Code::NotFound);
    let say = |kind, is_so: bool, reason, message: String| condition::Finding {
        kind,
        status: is_so.into(),
        reason,
        message,
        observed_generation: Some(generation),
    };
    let reason = |code: Code| match code {
        Code::Invalid | Code::Required | Code::TooLarge => condition::Reason::Invalid,
        Code::Unsupported => condition::Reason::Unsupported,
        Code::NotFound => condition::Reason::TargetNotFound,
        Code::Conflicted => condition::Reason::Conflicted,
        Code::NotReady => condition::Reason::Pending,
    };
    vec![
        match worst {
            None => say(
                condition::Type::Accepted,
                true,
                condition::Reason::Accepted,
                "accepted everywhere".to_owned(),
            ),
            Some(worst) => say(
                condition::Type::Accepted,
                false,
                reason(worst.code),
                message(worst),
            ),
        },
        match missing {
            None => say(
                condition::Type::ResolvedRefs,
                true,
                condition::Reason::ResolvedRefs,
                "every reference leads somewhere".to_owned(),
            ),
            Some(missing) => say(
                condition::Type::ResolvedRefs,
                false,
                condition::Reason::TargetNotFound,
                message(missing),
            ),
        },
    ]
}

/// What is left of the room in a status.
struct Budget {
    left: usize,
    /// What found no room.
    omitted: usize,
}

impl Budget {
    fn new() -> Self {
        Self {
            left: BUDGET,
            omitted: 0,
        }
    }

    /// Takes room for something of this size, keeping `reserve` for what comes later.
    fn take(&mut self, size: usize, reserve: usize) -> bool {
        if size + reserve <= self.left {
            self.left -= size;
            true
        } else {
            self.omitted += 1;
            false
        }
    }

    fn omitted(&self) -> i64 {
        i64::try_from(self.omitted).unwrap_or(i64::MAX)
    }

    /// As many messages as there is room for.
    fn messages(&mut self, findings: &[Finding]) -> Vec<String> {
        let mut messages: Vec<_> = findings.iter().map(message).collect();
        self.fit(&mut messages, 0);
        messages
    }

    /// Leaves out the messages for which there is no room.
    fn fit(&mut self, messages: &mut Vec<String>, reserve: usize) {
        messages.retain(|message| self.take(size(message) + 1, reserve));
    }

    /// As many entries as there is room for; `entries` has those with errors first.
    fn entries(
        &mut self,
        entries: impl Iterator<Item = (Key, ApprovalStatus)>,
        reserve: usize,
    ) -> BTreeMap<String, ApprovalStatus> {
        let mut listed = BTreeMap::new();
        for (key, mut entry) in entries {
            let mut errors = std::mem::take(&mut entry.errors);
            let mut warnings = std::mem::take(&mut entry.warnings);
            let lists = r#","errors":[],"warnings":[]"#.len();
            if self.take(size(&key.as_str()) + size(&entry) + lists + 2, reserve) {
                self.fit(&mut errors, reserve);
                self.fit(&mut warnings, reserve);
                let key = key.as_str().to_owned();
                listed.insert(
                    key,
                    ApprovalStatus {
                        errors,
                        warnings,
                        ..entry
                    },
                );
            }
        }
        listed
    }
}
