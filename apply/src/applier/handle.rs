//! How an applier is told what to do.

use tokio::sync::mpsc;
use tracing::Span;

use crate::object::ObjectId;

/// Tells an [`Applier`](super::Applier) what to do. Never waits; clones tell the same applier.
#[derive(Clone, Debug)]
pub struct Handle {
    /// Unbounded, as the applier takes everything in at once and keeps one entry per object.
    commands: mpsc::UnboundedSender<Told>,
}

/// A command, and the span of what led to it.
pub(super) type Told = (Command, Span);

#[derive(Debug)]
pub(super) enum Command {
    Want(Vec<ObjectId>),
    Explicit(Vec<ObjectId>),
    Complete,
    Release,
}

impl Handle {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Told>) {
        let (commands, receiver) = mpsc::unbounded_channel();
        (Self { commands }, receiver)
    }

    /// These have changed: they are wanted, look different, or are not wanted any more. Which of these is
    /// asked from the [`Source`](crate::Source) when it is their turn.
    ///
    /// What is told together is written in the order of kinds and ranks.
    pub fn want(&self, ids: impl IntoIterator<Item = ObjectId>) {
        self.tell(Command::Want(ids.into_iter().collect()));
    }

    /// As [`want`](Self::want), and if they are deleted, that is because a person has deleted something:
    /// they do not count for a mass delete.
    pub fn explicit(&self, ids: impl IntoIterator<Item = ObjectId>) {
        self.tell(Command::Explicit(ids.into_iter().collect()));
    }

    /// From now on what the [`Source`](crate::Source) does not want is not wanted; before that nothing is
    /// deleted. To be told again when the source knows of more objects whether they are wanted.
    pub fn complete(&self) {
        self.tell(Command::Complete);
    }

    /// What is held now may be deleted. A mass delete that comes later is held again.
    pub fn release(&self) {
        self.tell(Command::Release);
    }

    fn tell(&self, command: Command) {
        if self.commands.send((command, Span::current())).is_err() {
            tracing::debug!("the applier has ended; its cluster is gone");
        }
    }
}
