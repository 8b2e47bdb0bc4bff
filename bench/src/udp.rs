//! The upper limit by the kernel: datagrams of 1,452 bytes in batches, without encryption and acknowledgements. Received bytes are counted.

use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};

use crate::transport::Failed;
use crate::work::{Measured, cpu_seconds};

pub fn bulk(warm: Duration, time: Duration) -> Result<Measured, Failed> {
    let (from, to) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    let (read, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let sending = scope.spawn(|| send(&from, &to, &is_over));
        let receiving = scope.spawn(|| receive(&to, &read, &is_over));
        thread::sleep(warm);
        let (begin, cpu, before) = (Instant::now(), cpu_seconds(), read.load(Ordering::Relaxed));
        thread::sleep(time);
        let bytes = (read.load(Ordering::Relaxed) - before) as f64;
        let (seconds, cpu) = (begin.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        is_over.store(true, Ordering::Relaxed);
        for ended in [sending.join(), receiving.join()] {
            ended.map_err(|_| "a thread has panicked")??;
        }
        Ok(Measured::Bulk { gigabits: bytes * 8e-9 / seconds, cpu: cpu / (bytes * 1e-9) })
    })
}

fn send(from: &UdpSocket, to: &UdpSocket, is_over: &AtomicBool) -> io::Result<()> {
    let state = UdpSocketState::new(from.into())?;
    from.set_nonblocking(false)?;
    let contents = vec![0x5a; DATAGRAM * state.max_gso_segments().min(45)];
    let transmit = Transmit {
        destination: to.local_addr()?,
        ecn: None,
        contents: &contents,
        segment_size: Some(DATAGRAM),
        src_ip: None,
    };
    while !is_over.load(Ordering::Relaxed) {
        // Datagrams without room at the other end are lost.
        state.try_send(from.into(), &transmit)?;
    }
    Ok(())
}

fn receive(to: &UdpSocket, read: &AtomicU64, is_over: &AtomicBool) -> io::Result<()> {
    let state = UdpSocketState::new(to.into())?;
    _ = state.set_recv_buffer_size(to.into(), 4 << 20);
    to.set_nonblocking(false)?;
    to.set_read_timeout(Some(Duration::from_millis(100)))?;
    let mut memory = vec![vec![0; 1 << 16]; BATCH_SIZE];
    let mut metas = vec![RecvMeta::default(); BATCH_SIZE];
    while !is_over.load(Ordering::Relaxed) {
        let mut slices: Vec<_> = memory.iter_mut().map(|memory| IoSliceMut::new(memory)).collect();
        match state.recv(to.into(), &mut slices, &mut metas) {
            Ok(count) => {
                let bytes: usize = metas[..count].iter().map(|meta| meta.len).sum();
                read.fetch_add(bytes as u64, Ordering::Relaxed);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

const DATAGRAM: usize = 1452;
