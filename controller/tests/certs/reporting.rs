//! What a virtual mesh is told.

use ferromesh_ca::bundle::RootId;
use ferromesh_controller::certs::report::{Seen, TrustReport, report};
use ferromesh_controller::certs::root::RootFault;
use ferromesh_crds::condition::{Reason, Status};
use ferromesh_hands::mark::Generation;
use ferromesh_hands::perform::{Progress, Repair, Restart};
use ferromesh_hands::restart::Waiting;
use ferromesh_hands::state::{LiveCa, Obstacle, Standing};

use super::fleet::{start, wanted};

fn id(digit: &str) -> RootId {
    digit.repeat(64).parse().unwrap()
}

fn live() -> LiveCa {
    LiveCa {
        generation: Some(Generation::FIRST),
        root: id("a"),
        not_after: start(),
        root_since: start(),
    }
}

fn progress(standing: Standing, live: Option<LiveCa>) -> Progress {
    Progress {
        standing,
        live,
        restart: Restart::Finished(None),
        repaired: None,
        again: None,
    }
}

fn told(root: &Result<RootId, RootFault>, progress: Progress) -> TrustReport {
    let seen = Seen::Progress(Box::new(progress));
    report(&wanted("cluster-1"), root, &seen, None)
}

fn lost() -> Result<RootId, RootFault> {
    Err(RootFault::Lost {
        secret: "gloo-mesh/vm.gloo-mesh".to_owned(),
        record: "gloo-mesh/vm.gloo-mesh.root".to_owned(),
    })
}

#[test]
fn a_mesh_is_ready_when_cacerts_is_stored_and_verified_under_the_root() {
    let report = told(&Ok(id("a")), progress(Standing::Stored, Some(live())));
    assert_eq!(
        (report.state, report.reason),
        (Status::True, Reason::Verified)
    );
    assert_eq!(report.not_after, Some(start()));
    assert_eq!(report.wanted, wanted("cluster-1"));
}

#[test]
fn a_mesh_without_cacerts_is_not_ready() {
    for standing in [Standing::WithoutKey, Standing::Asked, Standing::Shared] {
        let report = told(&Ok(id("a")), progress(standing, None));
        assert_eq!(
            (report.state, report.reason),
            (Status::False, Reason::Issuing)
        );
        assert_eq!(report.not_after, None);
    }
    let nothing = report(&wanted("cluster-1"), &Ok(id("a")), &Seen::Nothing, None);
    assert_eq!(
        (nothing.state, nothing.reason),
        (Status::False, Reason::Issuing)
    );
}

#[test]
fn a_mesh_stays_ready_while_its_certificate_is_renewed_or_renewal_fails() {
    let refused = Standing::Blocked(Obstacle::Refused("no".to_owned()));
    for (standing, said) in [(Standing::Asked, "being issued"), (refused, "no")] {
        let report = told(&Ok(id("a")), progress(standing, Some(live())));
        assert_eq!(report.state, Status::True);
        assert!(report.message.contains(said), "{}", report.message);
    }
    let report = told(&lost(), progress(Standing::Stored, Some(live())));
    assert_eq!(report.state, Status::True);
    assert!(report.message.contains("restore it"), "{}", report.message);
}

#[test]
fn a_mesh_under_another_root_is_not_ready() {
    let report = told(&Ok(id("b")), progress(Standing::Stored, Some(live())));
    assert_eq!(
        (report.state, report.reason),
        (Status::False, Reason::IssuanceFailed)
    );
    assert!(report.message.contains(&id("b").to_string()));
}

#[test]
fn why_there_is_no_certificate_is_told() {
    let refused = Standing::Blocked(Obstacle::Refused("because".to_owned()));
    let report = told(&Ok(id("a")), progress(refused, None));
    assert_eq!(report.reason, Reason::IssuanceFailed);
    assert!(report.message.contains("because"), "{}", report.message);
    let report = told(&lost(), progress(Standing::Asked, None));
    assert_eq!(report.reason, Reason::IssuanceFailed);
    assert!(report.message.contains("restore it"), "{}", report.message);
}

#[test]
fn what_a_person_must_do_is_told_though_the_mesh_is_ready() {
    let mut progress = progress(Standing::Stored, Some(live()));
    progress.restart = Restart::Finished(Some(Waiting::Person {
        namespace: "istio-system".to_owned(),
        pods: vec!["istiod-1".to_owned()],
    }));
    progress.repaired = Some(Repair {
        by: Some("kubectl-edit".to_owned()),
    });
    let report = told(&Ok(id("a")), progress);
    assert_eq!(report.state, Status::True);
    for said in ["istiod-1", "kubectl-edit"] {
        assert!(report.message.contains(said), "{}", report.message);
    }
}

#[test]
fn a_cluster_that_cannot_be_asked_leaves_the_question_open() {
    let seen = Seen::Unreachable("connection refused".to_owned());
    let report = report(&wanted("cluster-1"), &Ok(id("a")), &seen, Some(start()));
    assert_eq!(
        (report.state, report.reason),
        (Status::Unknown, Reason::ClusterUnreachable)
    );
    assert_eq!(report.not_after, Some(start()));
    assert!(report.message.contains("connection refused"));
}

#[test]
fn a_cluster_that_refuses_is_to_be_registered_again() {
    let seen = Seen::Refused("reading Secret istio-system/cacerts: forbidden".to_owned());
    let report = report(&wanted("cluster-1"), &Ok(id("a")), &seen, None);
    assert_eq!(
        (report.state, report.reason),
        (Status::False, Reason::IssuanceFailed)
    );
    for said in ["cluster-1", "register the cluster again", "cacerts"] {
        assert!(report.message.contains(said), "{}", report.message);
    }
}

#[test]
fn messages_are_bounded() {
    let seen = Seen::Refused("é".repeat(10_000));
    let report = report(&wanted("cluster-1"), &Ok(id("a")), &seen, None);
    assert!(report.message.len() <= 1024);
}
