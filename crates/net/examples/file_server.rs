//! A server of the files of a folder: `file_server FOLDER` prints a ticket, `file_server TICKET NAME` writes a file to standard output.
//!
//! A request is a message with a file name. The reply is a message that begins with a zero if the file follows, otherwise it
//! contains the reason. A name that begins with a slash or contains `..` is refused, so no file outside the folder can be read.
//! For whole folders, preserved dates and resumable transfers, use `anabranch send` and the crate `anabranch-transfer`.

#![expect(clippy::print_stdout, reason = "it is what the example shows")]

use std::error::Error;
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};

use anabranch::{Config, Connection, Endpoint, SecretKey, Ticket};
use bytes::Bytes;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [folder] => serve(Path::new(folder)).await,
        [ticket, name] => fetch(&ticket.parse()?, name).await,
        _ => Err("type `file_server FOLDER` or `file_server TICKET NAME`".into()),
    }
}

async fn serve(folder: &Path) -> Result<(), Box<dyn Error>> {
    let folder = folder.canonicalize()?;
    let endpoint = Endpoint::server("0.0.0.0:0".parse()?, &SecretKey::generate()?, Config::default())?;
    println!("{}", endpoint.ticket());
    while let Some(connection) = endpoint.accept().await {
        let folder = folder.clone();
        tokio::spawn(async move {
            while let Ok(name) = connection.accept_message(NAME_MAX).await {
                tokio::spawn(answer(connection.clone(), folder.clone(), name));
            }
            _ = connection.close().await;
        });
    }
    Ok(())
}

async fn answer(connection: Connection, folder: PathBuf, name: Bytes) {
    let file = match place(&folder, &name) {
        Some(path) => tokio::task::spawn_blocking(move || std::fs::read(path).map_err(|error| error.to_string()))
            .await
            .unwrap_or_else(|error| Err(error.to_string())),
        None => Err("there is no such name here".to_owned()),
    };
    let Ok(mut reply) = connection.open_stream().await else { return };
    let parts = match file {
        Ok(bytes) => [Bytes::from_static(&[0]), bytes.into()],
        Err(reason) => [Bytes::from_static(&[1]), reason.into()],
    };
    for part in parts {
        if reply.write_all_bytes(part).await.is_err() {
            return;
        }
    }
    _ = reply.finish();
}

/// The file with this name, if the name stays inside the folder even with links resolved.
fn place(folder: &Path, name: &[u8]) -> Option<PathBuf> {
    let name = Path::new(std::str::from_utf8(name).ok()?);
    let is_plain = name.components().all(|part| matches!(part, Component::Normal(_)));
    let path = folder.join(name).canonicalize().ok()?;
    (is_plain && path.starts_with(folder)).then_some(path)
}

async fn fetch(ticket: &Ticket, name: &str) -> Result<(), Box<dyn Error>> {
    let connection = Endpoint::client(Config::default())?.connect(ticket).await?;
    connection.send_message(Bytes::from(name.to_owned())).await?;
    let reply = connection.accept_message(FILE_MAX).await?;
    connection.close().await?;
    match reply.split_first() {
        Some((0, file)) => Ok(std::io::stdout().write_all(file)?),
        Some((_, reason)) => Err(String::from_utf8_lossy(reason).into()),
        None => Err("the reply is empty".into()),
    }
}

/// Largest name, and largest file to request, in bytes.
const NAME_MAX: usize = 4096;
const FILE_MAX: usize = 1 << 30;
