//! What breaks in a day.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ferromesh_core::Kind;
use ferromesh_testkit::fakeapi::{Fault, Request, Snapshot};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::dice::Dice;
use crate::network::Line;
use crate::people::VIRTUAL_MESH;
use crate::registration::{deregister, registered};
use crate::replica::Replica;
use crate::rival::{Rival, meddle};
use crate::world::{LEASE, NAMESPACE, PEOPLE, World, input, leases, place_of};

/// How long trouble lasts.
const SHORTEST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(40);

/// What breaks, and what was kept before it did.
pub(crate) struct Trouble {
    world: Arc<World>,
    dice: Dice,
    /// Backups of API servers.
    backups: Vec<(String, Snapshot)>,
}

impl Trouble {
    pub(crate) fn new(world: &Arc<World>, dice: Dice) -> Self {
        Self {
            world: Arc::clone(world),
            dice,
            backups: Vec::new(),
        }
    }

    /// Breaks something, and says what.
    pub(crate) fn strike(&mut self, replicas: &[Replica]) -> String {
        match self.dice.below(30) {
            0..=3 => {
                let killed = self.dice.one(replicas).kill();
                format!("killed: {killed:?}")
            }
            4 => {
                let told = self.dice.one(replicas).terminate();
                format!("told to end: {told:?}")
            }
            5..=8 => self.part(replicas),
            9..=13 => self.storm(),
            14 => self.slow(),
            15 => {
                let place = self.place();
                self.world.network.cut(&place);
                format!("connections to {place:?} break")
            }
            16 => {
                let place = self.place();
                self.world.api(&place).compact();
                format!("watches of {place:?} expire")
            }
            17 => self.mute(),
            18 => self.back_up(),
            19 => self.restore(),
            20 => self.steal(),
            21 => self.stop(),
            22 => self.relist(),
            23 => self.revoke(),
            24 => self.vanish(),
            25..=26 => self.rival(),
            _ => meddle(&self.world, &mut self.dice),
        }
    }

    fn place(&mut self) -> String {
        let places: Vec<_> = self.world.places().collect();
        (*self.dice.one(&places)).to_owned()
    }

    fn while_it_lasts(&mut self) -> Duration {
        self.dice.between(SHORTEST, LONGEST)
    }

    /// A replica and an API server, or all of them, lose each other.
    fn part(&mut self, replicas: &[Replica]) -> String {
        let count = u32::try_from(replicas.len()).unwrap_or(u32::MAX);
        let replica = self.dice.below(count);
        let lasting = self.while_it_lasts();
        let line = *self.dice.one(&[Line::Silent, Line::Refused]);
        let all: Vec<String> = self.world.places().map(str::to_owned).collect();
        let places = if self.dice.percent(30) {
            all
        } else {
            vec![self.dice.one(&all).clone()]
        };
        let said = format!("{line:?} between replica {replica} and {places:?} for {lasting:?}");
        for place in &places {
            self.world.network.set(replica, place, line);
        }
        let world = Arc::clone(&self.world);
        tokio::spawn(async move {
            sleep(lasting).await;
            for place in &places {
                world.network.set(replica, place, Line::Open);
            }
        });
        said
    }

    /// An API server is stopped and started again.
    fn stop(&mut self) -> String {
        let (place, lasting) = (self.place(), self.while_it_lasts());
        let said = format!("{place:?} is stopped for {lasting:?}");
        self.world.network.set_all(&place, Line::Refused);
        let world = Arc::clone(&self.world);
        tokio::spawn(async move {
            sleep(lasting).await;
            world.network.set_all(&place, Line::Open);
        });
        said
    }

    /// A cluster goes, and is deregistered while nobody can reach it.
    fn vanish(&mut self) -> String {
        let names: Vec<_> = registered(&self.world).into_iter().collect();
        if names.is_empty() {
            return "no cluster is left that could vanish".to_owned();
        }
        let name = self.dice.one(&names);
        let place = place_of(name).to_owned();
        self.world.network.set_all(&place, Line::Refused);
        deregister(&self.world, name);
        let said = format!("{name} cannot be reached and is deregistered");
        let (world, lasting) = (Arc::clone(&self.world), self.while_it_lasts());
        tokio::spawn(async move {
            sleep(lasting).await;
            world.network.set_all(&place, Line::Open);
        });
        said
    }

    /// Every watch has to begin anew, and nobody is quick.
    fn relist(&mut self) -> String {
        let lasting = self.while_it_lasts();
        let by = self.dice.between(SHORTEST, Duration::from_secs(3));
        let until = Instant::now() + lasting;
        for place in self.world.places() {
            self.world.network.slow(place, by, until);
            self.world.api(place).compact();
        }
        format!("everything is slow by {by:?} for {lasting:?}, and all watches expire")
    }

    /// An API server accepts no token, for a while.
    fn revoke(&mut self) -> String {
        let places: Vec<_> = self.world.managed().map(str::to_owned).collect();
        let (place, lasting) = (self.dice.one(&places).clone(), self.while_it_lasts());
        let said = format!("{place:?} accepts no token for {lasting:?}");
        let revoked = self.world.accept(&place, BTreeSet::new());
        let world = Arc::clone(&self.world);
        tokio::spawn(async move {
            sleep(lasting).await;
            for token in revoked {
                world.accept_too(&place, &token);
            }
        });
        said
    }

    /// Somebody changes an object of ours whenever we have put it right.
    fn rival(&mut self) -> String {
        let Some(rival) = Rival::of_any(&self.world, &mut self.dice) else {
            return "somebody looks for something to quarrel about".to_owned();
        };
        let lasting = self.while_it_lasts();
        let said = format!("somebody quarrels about {rival} for {lasting:?}");
        tokio::spawn(rival.quarrel(Arc::clone(&self.world), lasting));
        said
    }

    /// An API server refuses, hangs or breaks some of what it is asked.
    fn storm(&mut self) -> String {
        let refuse = Fault::refuse;
        let faults = [
            Fault::Refuse {
                code: 429,
                retry_after: Some(Duration::from_secs(2)),
            },
            refuse(429),
            refuse(401),
            refuse(403),
            refuse(409),
            refuse(500),
            refuse(503),
            refuse(504),
            Fault::Answer("not json"),
            Fault::Hang,
            Fault::Break,
            Fault::LoseAnswer,
            Fault::WithholdAnswer,
        ];
        let fault = self.dice.one(&faults).clone();
        let (place, lasting) = (self.place(), self.while_it_lasts());
        let share = *self.dice.one(&[10, 50, 100]);
        let only_writes = self.dice.percent(30);
        let said = format!(
            "{place:?}: {fault:?} for {share} % of {lasting:?}, writes alone: {only_writes}"
        );
        let (until, mut dice) = (Instant::now() + lasting, self.dice.fork());
        let meets = move |request: &Request| {
            let is_meant = request.verb.is_write() || !only_writes;
            Instant::now() < until && is_meant && dice.percent(share)
        };
        self.world.api(&place).fail(fault, meets);
        said
    }

    fn slow(&mut self) -> String {
        let (place, lasting) = (self.place(), self.while_it_lasts());
        let by = self.dice.between(SHORTEST, Duration::from_secs(3));
        let until = Instant::now() + lasting;
        self.world.network.slow(&place, by, until);
        format!("{place:?} is slow by {by:?} for {lasting:?}")
    }

    /// Watches lose what happens, until they expire.
    fn mute(&mut self) -> String {
        let (place, lasting) = (self.place(), self.while_it_lasts());
        let said = format!("watches of {place:?} say nothing for {lasting:?}");
        let until = Instant::now() + lasting;
        self.world.network.mute(&place, until);
        let world = Arc::clone(&self.world);
        tokio::spawn(async move {
            tokio::time::sleep_until(until).await;
            world.api(&place).compact();
        });
        said
    }

    fn back_up(&mut self) -> String {
        let place = self.place();
        let snapshot = self.world.api(&place).snapshot();
        let said = format!("{place:?} is backed up");
        self.backups.push((place, snapshot));
        said
    }

    fn restore(&mut self) -> String {
        if self.backups.is_empty() {
            return self.back_up();
        }
        let (place, snapshot) = self.dice.one(&self.backups).clone();
        let api = self.world.api(&place);
        // Whoever restores a management cluster puts back the root that is younger than the backup.
        let secret = input(Kind::Secret);
        let name = format!("{VIRTUAL_MESH}.{NAMESPACE}");
        let root = api.get(&secret, NAMESPACE, &name);
        api.restore(&snapshot);
        if let Some(mut root) = root.filter(|_| place.is_empty()) {
            let metadata = root["metadata"].as_object_mut();
            metadata.map(|fields| fields.remove("uid"));
            self.world.put(&place, &root);
        }
        // The API server has been started again.
        self.world.network.cut(&place);
        if place.is_empty() {
            self.world.watchdog.robbed(api);
        }
        format!("{place:?} is restored from a backup")
    }

    /// Somebody takes the lease, gives it away or deletes it.
    fn steal(&mut self) -> String {
        let api = self.world.api("");
        let how = match self.dice.below(3) {
            0 => {
                api.remove(&leases(), NAMESPACE, LEASE);
                "deletes"
            }
            1 => {
                api.edit(PEOPLE, &leases(), NAMESPACE, LEASE, |lease| {
                    lease["spec"]["holderIdentity"] = json!("");
                });
                "clears"
            }
            _ => {
                api.edit(PEOPLE, &leases(), NAMESPACE, LEASE, |lease| {
                    lease["spec"]["holderIdentity"] = json!("thief");
                });
                "steals"
            }
        };
        self.world.watchdog.robbed(api);
        format!("somebody {how} the lease")
    }
}
