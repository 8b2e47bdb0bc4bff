//! This project's transport, with its default settings but for the cipher.

use std::net::SocketAddr;

use anabranch::{Cipher, Config, Connection, Endpoint, RecvStream, SecretKey, SendStream, Ticket};
use bytes::Bytes;

use crate::transport::{BLOCK, Failed, Link, Listening, ReceiveSide, SendSide, Transport};

pub struct Ours {
    /// The one that both ends prefer; `None` is the default.
    pub cipher: Option<Cipher>,
}

impl Ours {
    fn config(&self) -> Config {
        Config { cipher: self.cipher, ..Config::default() }
    }
}

/// A server with these settings.
pub fn listening(at: SocketAddr, config: Config) -> Result<Endpoint, Failed> {
    Ok(Endpoint::server(at, &SecretKey::generate()?, config)?)
}

impl Transport for Ours {
    type Link = Connection;

    async fn listen(&self, at: SocketAddr) -> Result<Listening<Connection>, Failed> {
        let server = listening(at, self.config())?;
        let hello = server.ticket().to_string();
        let link = Box::pin(async move { server.accept().await.ok_or_else(|| "the socket is gone".into()) });
        Ok(Listening { hello, link })
    }

    async fn connect(&self, hello: &str) -> Result<Connection, Failed> {
        let ticket: Ticket = hello.parse()?;
        // An IPv4 socket as the others have, not a dual-stack socket as of `Endpoint::client`: it is less work for the kernel.
        let client = Endpoint::bind("0.0.0.0:0".parse()?, &SecretKey::generate()?, self.config())?;
        Ok(client.connect(&ticket).await?)
    }
}

impl Link for Connection {
    type Send = SendStream;
    type Receive = RecvStream;

    async fn open(&self) -> Result<SendStream, Failed> {
        Ok(self.open_stream().await?)
    }

    async fn accept(&self) -> Result<RecvStream, Failed> {
        Ok(self.accept_stream().await?)
    }

    async fn call(&self) -> Result<(SendStream, RecvStream), Failed> {
        let mut request = self.open_stream().await?;
        request.write_all(&[0]).await?;
        let mut reply = self.accept_stream().await?;
        reply.read_all(1).await?;
        Ok((request, reply))
    }

    async fn answer(&self) -> Result<(SendStream, RecvStream), Failed> {
        let mut request = self.accept_stream().await?;
        request.read_all(1).await?;
        let mut reply = self.open_stream().await?;
        reply.write_all(&[0]).await?;
        Ok((reply, request))
    }
}

impl SendSide for SendStream {
    async fn write(&mut self, bytes: Bytes) -> Result<(), Failed> {
        Ok(self.write_all_bytes(bytes).await?)
    }

    async fn finish(&mut self) -> Result<(), Failed> {
        Ok(Self::finish(self)?)
    }
}

impl ReceiveSide for RecvStream {
    async fn read(&mut self) -> Result<Option<Bytes>, Failed> {
        Ok(self.read_chunk(BLOCK).await?)
    }
}
