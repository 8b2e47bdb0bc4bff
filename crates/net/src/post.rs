//! Messages on a connection between a relay and a member, in both directions, so that neither waits for the other.

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::message::MESSAGE_MAX;

/// The messages of a connection. When it is dropped, nothing more is read or sent.
#[derive(Debug)]
pub(crate) struct Post {
    letters: mpsc::Receiver<Bytes>,
    sender: mpsc::Sender<Bytes>,
    _tasks: JoinSet<()>,
}

impl Post {
    pub(crate) fn new(connection: &Connection) -> Self {
        let (came, letters) = mpsc::channel(WAITING_MAX);
        let (sender, mut leaving) = mpsc::channel(WAITING_MAX);
        let mut tasks = JoinSet::new();
        let reading = connection.clone();
        tasks.spawn(async move {
            // A message that is too long ends the conversation, as its sender is broken or hostile.
            while let Ok(letter) = reading.accept_message(MESSAGE_MAX).await {
                if came.send(letter).await.is_err() {
                    break;
                }
            }
        });
        let writing = connection.clone();
        tasks.spawn(async move {
            while let Some(letter) = leaving.recv().await {
                if writing.send_message(letter).await.is_err() {
                    break;
                }
            }
        });
        Self { letters, sender, _tasks: tasks }
    }

    /// Sends a message. If the other end reads none, it is dropped.
    pub(crate) fn send(&self, letter: Bytes) {
        _ = self.sender.try_send(letter);
    }

    /// What sends messages to the other end, for others.
    pub(crate) fn sender(&self) -> mpsc::Sender<Bytes> {
        self.sender.clone()
    }

    /// The next message; `None` if no more can come.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        self.letters.recv().await
    }
}

/// Messages that wait in one direction.
const WAITING_MAX: usize = 64;
