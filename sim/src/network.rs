//! How requests get from a replica to an API server, and how they do not.

use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, Bytes};
use ferromesh_testkit::fakeapi::{Request, Verb};
use futures_util::{StreamExt, poll, stream};
use http::{Request as HttpRequest, Response, StatusCode};
use kube::Client;
use serde_json::json;
use tokio::select;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::dice::Dice;
use crate::watchdog::Sight;
use crate::world::{NAMESPACE, World};

/// How long a request or an answer is on its way.
const NEAR: Duration = Duration::from_millis(1);
const FAR: Duration = Duration::from_millis(25);

/// Whether anything gets through between a replica and an API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Open,
    /// Nothing gets through and nobody is told. What is on its way arrives when the line is open again, if
    /// somebody still waits for it.
    Silent,
    /// Connections break, and new ones are refused.
    Refused,
}

/// The lines between replicas and API servers, and how fast these are.
pub(crate) struct Network {
    lines: BTreeMap<(u32, String), watch::Sender<Line>>,
    places: BTreeMap<String, Place>,
    dice: Mutex<Dice>,
}

#[derive(Default)]
struct Place {
    /// Everything takes up to so much longer until then.
    slow: Mutex<Option<(Instant, Duration)>>,
    /// Watches say nothing of what happens until then.
    mute: Mutex<Option<Instant>>,
    /// Each number ends the connections of the one before.
    connections: watch::Sender<u64>,
}

/// Who is at the near end of a wire: one life of a replica.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) replica: u32,
    pub(crate) identity: String,
    /// The dead neither say nor hear anything.
    pub(crate) dead: CancellationToken,
}

/// From one life of a replica to one API server.
struct Wire {
    world: Arc<World>,
    caller: Caller,
    place: String,
    /// None where nobody asks for one.
    token: Option<String>,
    line: watch::Receiver<Line>,
    dice: Mutex<Dice>,
}

const UNPOISONED: &str = "nobody panics while holding this lock";

impl Network {
    pub(crate) fn new<'a>(
        places: impl Iterator<Item = &'a String> + Clone,
        replicas: u32,
        dice: Dice,
    ) -> Self {
        let ends = (0..replicas).flat_map(|replica| places.clone().map(move |it| (replica, it)));
        Self {
            lines: ends
                .map(|(replica, place)| ((replica, place.clone()), watch::Sender::new(Line::Open)))
                .collect(),
            places: places
                .map(|place| (place.clone(), Place::default()))
                .collect(),
            dice: Mutex::new(dice),
        }
    }

    /// Changes the line between a replica and an API server.
    pub(crate) fn set(&self, replica: u32, place: &str, line: Line) {
        let end = (replica, place.to_owned());
        self.lines[&end].send_replace(line);
    }

    /// Everything to and from an API server takes up to so much longer.
    pub(crate) fn slow(&self, place: &str, by: Duration, until: Instant) {
        let mut slow = self.places[place].slow.lock().expect(UNPOISONED);
        *slow = Some((until, by));
    }

    /// Watches of an API server lose what happens.
    pub(crate) fn mute(&self, place: &str, until: Instant) {
        let mut mute = self.places[place].mute.lock().expect(UNPOISONED);
        *mute = Some(until);
    }

    /// Nobody reaches an API server, or everybody does.
    pub(crate) fn set_all(&self, place: &str, line: Line) {
        for ((_, to), ends) in &self.lines {
            if to == place {
                ends.send_replace(line);
            }
        }
    }

    /// Breaks every connection with an API server.
    pub(crate) fn cut(&self, place: &str) {
        self.places[place]
            .connections
            .send_modify(|number| *number += 1);
    }

    /// Everything gets through again.
    pub(crate) fn heal(&self) {
        for line in self.lines.values() {
            line.send_replace(Line::Open);
        }
        for place in self.places.values() {
            *place.slow.lock().expect(UNPOISONED) = None;
            *place.mute.lock().expect(UNPOISONED) = None;
        }
    }
}

/// A client for one life of a replica, which reaches one API server and shows it a token.
pub(crate) fn client(
    world: &Arc<World>,
    caller: &Caller,
    place: &str,
    token: Option<String>,
) -> Client {
    let network = &world.network;
    let end = (caller.replica, place.to_owned());
    let wire = Arc::new(Wire {
        world: Arc::clone(world),
        caller: caller.clone(),
        place: place.to_owned(),
        token,
        line: network.lines[&end].subscribe(),
        dice: Mutex::new(network.dice.lock().expect(UNPOISONED).fork()),
    });
    let carry = move |request: HttpRequest<kube::client::Body>| {
        let wire = Arc::clone(&wire);
        async move { wire.carry(request.map(Body::new)).await }
    };
    Client::new(tower::service_fn(carry), NAMESPACE)
}

impl Wire {
    async fn carry(self: Arc<Self>, request: HttpRequest<Body>) -> io::Result<Response<Body>> {
        if self.caller.dead.is_cancelled() {
            return std::future::pending().await;
        }
        let (answer, answered) = oneshot::channel();
        let mut connections = self.world.network.places[&self.place]
            .connections
            .subscribe();
        // What has been sent arrives, whatever becomes of whoever has sent it.
        let mut wire = self.fork();
        tokio::spawn(async move {
            wire.deliver(request, answer).await;
        });
        select! {
            biased;
            () = self.caller.dead.cancelled() => std::future::pending().await,
            answered = answered => match answered {
                Ok(answered) => answered,
                Err(_) => Err(reset()),
            },
            _ = connections.changed() => Err(reset()),
        }
    }

    async fn deliver(
        &mut self,
        request: HttpRequest<Body>,
        mut answer: oneshot::Sender<io::Result<Response<Body>>>,
    ) {
        let (there, back) = (self.delay(), self.delay());
        sleep(there).await;
        select! {
            biased;
            is_open = self.opened() => if !is_open {
                drop(answer.send(Err(refused())));
                return;
            },
            () = answer.closed() => return,
        }
        let answered = self.ask(request, &mut answer).await;
        sleep(back).await;
        select! {
            biased;
            is_open = self.opened() => {
                let answered = if is_open { answered } else { Some(Err(reset())) };
                if let Some(answered) = answered {
                    drop(answer.send(answered));
                }
            },
            () = answer.closed() => {}
        }
    }

    /// What the API server says, under the eyes of the watchdog; none if nobody waits for it any more.
    async fn ask(
        &self,
        request: HttpRequest<Body>,
        answer: &mut oneshot::Sender<io::Result<Response<Body>>>,
    ) -> Option<io::Result<Response<Body>>> {
        let (head, body) = request.into_parts();
        let asked = Request::of(&head);
        let token = self.token.as_deref();
        if token.is_some_and(|token| !self.world.accepts(&self.place, token)) {
            let (identity, place) = (&self.caller.identity, &self.place);
            let path = head.uri.path();
            let journal = &self.world.journal;
            journal.note(format_args!(
                "{identity} {place} {path}: 401, another token"
            ));
            return Some(Ok(unauthorized()));
        }
        let watchdog = &self.world.watchdog;
        let mut sight =
            asked.map(|asked| watchdog.before(&self.world, &self.caller, &self.place, asked));
        let api = self.world.api(&self.place);
        let mut answered = pin!(api.answer(HttpRequest::from_parts(head, body)));
        let at_once = poll!(&mut answered);
        if let Some(sight) = &mut sight {
            sight.look_again(&self.world, &self.place);
        }
        let answered = match at_once {
            Poll::Ready(answered) => Some(answered),
            Poll::Pending => select! {
                biased;
                answered = answered => Some(answered),
                () = answer.closed() => None,
            },
        };
        let verb = sight.as_ref().map(Sight::verb);
        let code = match &answered {
            Some(Ok(answered)) => Some(answered.status().as_u16()),
            Some(Err(_)) | None => None,
        };
        if let Some(sight) = &sight {
            watchdog.after(&self.world, &self.caller, &self.place, sight, code);
        }
        let answered = answered?;
        Some(match (answered, verb) {
            (Ok(answered), Some(Verb::Watch)) => Ok(answered.map(|body| self.fork().stream(body))),
            (answered, _) => answered,
        })
    }

    /// The body of a watch as it arrives.
    fn stream(self, body: Body) -> Body {
        let connections = self.world.network.places[&self.place]
            .connections
            .subscribe();
        let frames = stream::unfold(
            Some((self, body.into_data_stream(), connections)),
            |stream| async move {
                let (mut wire, mut frames, mut connections) = stream?;
                let mut line = wire.line.clone();
                loop {
                    let frame = select! {
                        biased;
                        () = wire.caller.dead.cancelled() => std::future::pending().await,
                        _ = connections.changed() => Some(Err(reset())),
                        () = refused_on(&mut line) => Some(Err(reset())),
                        frame = frames.next() => match frame {
                            Some(_) if wire.is_mute() => continue,
                            frame => frame.map(|frame| frame.map_err(io::Error::other)),
                        },
                    };
                    return match frame {
                        Some(Ok(frame)) => {
                            sleep(wire.delay()).await;
                            let arrived = if wire.opened().await {
                                Ok(frame)
                            } else {
                                Err(reset())
                            };
                            Some((arrived, Some((wire, frames, connections))))
                        }
                        Some(Err(error)) => Some((Err::<Bytes, _>(error), None)),
                        None => None,
                    };
                }
            },
        );
        Body::from_stream(frames)
    }

    /// Waits while the line is silent. Tells whether it is open then.
    async fn opened(&mut self) -> bool {
        let line = self.line.wait_for(|line| *line != Line::Silent).await;
        line.is_ok_and(|line| *line == Line::Open)
    }

    fn is_mute(&self) -> bool {
        let mute = self.world.network.places[&self.place].mute.lock();
        mute.expect(UNPOISONED)
            .is_some_and(|until| Instant::now() < until)
    }

    fn delay(&self) -> Duration {
        let slow = *self.world.network.places[&self.place]
            .slow
            .lock()
            .expect(UNPOISONED);
        let mut dice = self.dice.lock().expect(UNPOISONED);
        let far = slow.filter(|(until, _)| Instant::now() < *until);
        dice.between(NEAR, far.map_or(FAR, |(_, by)| by))
    }

    fn fork(&self) -> Self {
        Self {
            world: Arc::clone(&self.world),
            caller: self.caller.clone(),
            place: self.place.clone(),
            token: self.token.clone(),
            line: self.line.clone(),
            dice: Mutex::new(self.dice.lock().expect(UNPOISONED).fork()),
        }
    }
}

/// Waits until a line is refused.
async fn refused_on(line: &mut watch::Receiver<Line>) {
    if line.wait_for(|line| *line == Line::Refused).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn unauthorized() -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "reason": "Unauthorized", "message": "Unauthorized", "code": 401,
    });
    let mut response = Response::new(Body::from(status.to_string()));
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    response
}

fn reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the connection broke")
}

fn refused() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionRefused, "nobody answers there")
}
