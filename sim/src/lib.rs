//! The whole server through days of trouble, simulated: each day from a seed, and the same seed gives the
//! same day.
//!
//! Two or three replicas, each with the mirror, the lease and the controller that the server is put together from, live
//! over API servers in memory. People change what is wanted, and everything breaks that can. Whatever
//! happens, one replica writes, nothing is deleted that is wanted, and nothing is touched that is not ours;
//! and when the trouble is over, every cluster comes to hold what one step from nothing makes of
//! everything there is, and every condition says so.
//!
//! The replicas and the API servers share a thread and Tokio's paused clock, which goes from one event to
//! the next; between them lies a network of our own, and not one of simulated sockets (turmoil). That would
//! also run the HTTP of client and server, which has tests of its own, and it wakes every host in every
//! tick, a millisecond unless told otherwise: millions of times in a day of some thousand events. A replica
//! that is killed is cut off from everything at once; what its tasks do in the moment until they end nobody
//! can see.
//!
//! What may not enter: rules of the product, real time, chance that does not come from the seed.
//!
//! In reading order:
//!
//! - `day`: one day, from its seed to its verdict.
//! - `exam`: what takes calm to be seen.
//! - `people`: what people do.
//! - `registration`: how they register clusters.
//! - `trouble`: what breaks.
//! - `rival`: others who write what is ours.
//! - `replica`: the life of one replica.
//! - `world`: the clusters.
//! - `network`: how requests get there, and how they do not.
//! - `watchdog`: what must never happen, asked of each request.
//! - `truth`: what is to stand in the end.
//! - `journal`: what has happened.
//! - `dice`: chance, from the seed.

#![expect(
    unexpected_cfgs,
    reason = "Tokio takes a seed for the order of what is ready at once only under tokio_unstable"
)]

mod broken;
mod day;
mod dice;
mod exam;
mod journal;
mod network;
mod people;
mod registration;
mod replica;
mod rival;
mod trouble;
mod truth;
mod watchdog;
mod world;

pub use self::day::{Day, run};
