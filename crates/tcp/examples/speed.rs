//! Measures our TCP beside the kernel's through the same TUN device: `sudo target/release/examples/speed [SECONDS [MTU]]`.
//!
//! The kernel's TCP speaks to itself over a mirror: what it writes to the device is read, gets its addresses swapped, and is written back, as if a peer had
//! sent it. All of it runs in a network namespace of its own, on the same cores.

#![expect(clippy::print_stdout, reason = "it prints a table")]

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("it needs a TUN device of Linux");
}

#[cfg(target_os = "linux")]
fn main() -> linux::Result<()> {
    linux::main()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::error::Error;
    use std::io::{Read as _, Write as _};
    use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
    use std::process::Command;
    use std::time::{Duration, Instant};
    use std::{env, thread};

    use anabranch_cc::{Settings as Law, registry};
    use anabranch_tcp::{Config, Host, Settings};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tun_rs::DeviceBuilder;

    pub(super) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

    const INSIDE: &str = "ANABRANCH_INSIDE";
    const KERNEL: &str = "10.99.0.1";
    const OURS: &str = "10.99.0.2";
    const PORT: u16 = 80;

    pub(super) fn main() -> Result<()> {
        if env::var_os(INSIDE).is_none() {
            let mut inner = Command::new("unshare");
            inner.arg("-n").arg(env::current_exe()?).args(env::args().skip(1)).env(INSIDE, "1");
            return if inner.status()?.success() { Ok(()) } else { Err("it needs root and iproute2".into()) };
        }
        let mut arguments = env::args().skip(1);
        let time = Duration::from_secs(arguments.next().map_or(Ok(10), |text| text.parse())?);
        let mtu: u16 = arguments.next().map_or(Ok(1500), |text| text.parse())?;
        ip("link set lo up")?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        println!("Gbit/s, MTU {mtu}, {} s each", time.as_secs());
        for has_offload in [true, false] {
            let mirror = runtime.block_on(async { mirror(mtu, has_offload) })?;
            let name = if has_offload { "the kernel with itself" } else { "the same without offloads of the device" };
            println!("{name}: {:.2}", by_kernel(OURS.parse()?, time)?);
            mirror.abort();
            thread::sleep(Duration::from_secs(1));
        }
        let host = runtime.block_on(async { host(mtu) })?;
        let mut listener = host.listen(PORT)?;
        let server = runtime.spawn(async move {
            let mut stream = listener.accept().await?;
            let (mut buffer, mut total) = (vec![0; 1 << 16], 0);
            loop {
                match stream.read(&mut buffer).await? {
                    0 => return Ok::<_, std::io::Error>(total),
                    len => total += len as u64,
                }
            }
        });
        let begin = Instant::now();
        send(TcpStream::connect((OURS, PORT))?, time)?;
        let total = runtime.block_on(server)??;
        println!("the kernel to ours: {:.2}", gbit(total, begin.elapsed()));

        let listener = TcpListener::bind((KERNEL, PORT))?;
        let server = thread::spawn(move || listener.accept().map(|(stream, _)| receive(stream)));
        let total = runtime.block_on(async {
            let peer = SocketAddr::new(KERNEL.parse()?, PORT);
            let mut stream = host.connect(OURS.parse()?, peer).await?;
            let (data, until) = (vec![7; 1 << 16], Instant::now() + time);
            while Instant::now() < until {
                stream.write_all(&data).await?;
            }
            stream.shutdown().await?;
            Result::Ok(())
        });
        total?;
        println!("ours to the kernel: {:.2}", server.join().map_err(|_| "the server has failed")??);
        println!("packets that the device did not take: {}", host.tally().1);
        Ok(())
    }

    /// A connection of the kernel to itself, by way of this address.
    fn by_kernel(by: IpAddr, time: Duration) -> Result<f64> {
        let listener = TcpListener::bind((KERNEL, PORT))?;
        let server = thread::spawn(move || listener.accept().map(|(stream, _)| receive(stream)));
        send(TcpStream::connect((by, PORT))?, time)?;
        Ok(server.join().map_err(|_| "the server has failed")??)
    }

    fn send(mut stream: TcpStream, time: Duration) -> Result<()> {
        let (data, until) = (vec![7; 1 << 16], Instant::now() + time);
        while Instant::now() < until {
            stream.write_all(&data)?;
        }
        Ok(())
    }

    /// The rate until the end.
    fn receive(mut stream: TcpStream) -> f64 {
        let (mut buffer, mut total, begin) = (vec![0; 1 << 16], 0, Instant::now());
        while let Ok(len @ 1..) = stream.read(&mut buffer) {
            total += len as u64;
        }
        gbit(total, begin.elapsed())
    }

    fn gbit(bytes: u64, time: Duration) -> f64 {
        bytes as f64 * 8e-9 / time.as_secs_f64()
    }

    fn host(mtu: u16) -> Result<Host> {
        let mut connection = Config::new(Law::default_for(registry::find("anabranch")?));
        (connection.timestamps, connection.mss) = (true, mtu - 40);
        (connection.receive_buffer_max, connection.send_buffer_max) = (16 << 20, 16 << 20);
        let settings = Settings { addresses: vec![OURS.parse()?], connection, sockets_max: 16, backlog: 16 };
        let host = Host::open("speed", settings, [9; 32])?;
        set_up(mtu)?;
        Ok(host)
    }

    fn mirror(mtu: u16, has_offload: bool) -> Result<tokio::task::JoinHandle<()>> {
        let device = DeviceBuilder::new().name("speed").offload(has_offload).inherit_enable_state().build_async()?;
        set_up(mtu)?;
        let at = if has_offload { 10 } else { 0 };
        Ok(tokio::spawn(async move {
            let mut buffer = vec![0; 10 + (1 << 16)];
            while let Ok(len) = device.recv(&mut buffer).await {
                // IPv4's addresses; their sum stays.
                if len >= at + 20 && buffer[at] >> 4 == 4 {
                    let (source, destination) = buffer[at + 12..at + 20].split_at_mut(4);
                    source.swap_with_slice(destination);
                    _ = device.send(&buffer[..len]).await;
                }
            }
        }))
    }

    fn set_up(mtu: u16) -> Result<()> {
        ip(&format!("address replace {KERNEL}/24 dev speed"))?;
        ip(&format!("link set speed up mtu {mtu} txqueuelen 5000"))
    }

    fn ip(arguments: &str) -> Result<()> {
        let is_done = Command::new("ip").args(arguments.split(' ')).status()?.success();
        if is_done { Ok(()) } else { Err(format!("ip {arguments} fails").into()) }
    }
}
