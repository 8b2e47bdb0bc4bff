//! Metrics for Prometheus.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anabranch::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{Pair, client, server, soon};

/// The response to these bytes.
async fn answer(to: SocketAddr, request: &[u8]) -> String {
    let mut tcp = TcpStream::connect(to).await.unwrap();
    tcp.write_all(request).await.unwrap();
    let mut answer = String::new();
    soon(tcp.read_to_string(&mut answer)).await.unwrap();
    answer
}

/// Parses a text, and checks it: `# TYPE` comes before the samples of a metric, which are together, and each sample occurs once.
fn samples(text: &str) -> BTreeMap<&str, &str> {
    let (mut samples, mut types) = (BTreeMap::new(), vec![]);
    for line in text.lines() {
        if let Some(of) = line.strip_prefix("# TYPE ") {
            let (name, kind) = of.split_once(' ').unwrap();
            assert!(matches!(kind, "gauge" | "counter"), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(!types.contains(&name), "{line}");
            types.push(name);
        } else if !line.starts_with("# HELP ") {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            assert_eq!(types.last(), sample.split('{').next().as_ref(), "{line}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert!(samples.insert(sample, value).is_none(), "{line}");
        }
    }
    assert!(text.ends_with('\n'));
    samples
}

/// After a transfer of a megabyte, the numbers are those of the connection and its path, and the times of all limits add up to
/// the elapsed time.
#[tokio::test]
async fn a_scraper_reads_what_happened() {
    let begin = Instant::now();
    let pair = Pair::new().await;
    let at = pair.client.serve_metrics("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut stream = pair.there.open_stream().await.unwrap();
    stream.write_all(&vec![7; 1_000_000]).await.unwrap();
    stream.finish().unwrap();
    let mut come = pair.here.accept_stream().await.unwrap();
    assert_eq!(come.read_to_end(2_000_000).await.unwrap().len(), 1_000_000);
    while pair.there.paths()[0].report.flight > 0.0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The path is searching for its MTU meanwhile, so the comparison uses a moment in which nothing changed.
    let quiet = || (pair.there.paths()[0].report.tally, pair.there.paths()[0].report.datagram_max);
    let answered = loop {
        let before = quiet();
        let answered = answer(at, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        if quiet() == before {
            break answered;
        }
    };
    let (head, text) = answered.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
        "{head}"
    );
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", text.len())), "{head}");
    let samples = samples(text);
    let of = |name: &str| *samples.get(name).unwrap_or_else(|| panic!("{name} in {text}"));
    let (stats, path) = (pair.there.stats(), pair.there.paths()[0]);
    assert_eq!(of("anabranch_connections"), "1");
    assert_eq!(
        of(&format!("anabranch_connection_info{{connection=\"0\",peer=\"{}\"}}", pair.server.public_key())),
        "1"
    );
    let ends = format!("local=\"{}\",remote=\"{}\"", path.local, path.remote);
    let labels = "connection=\"0\",path=\"0\"";
    assert_eq!(of(&format!("anabranch_path_info{{{labels},{ends},state=\"live\",status=\"available\"}}")), "1");
    for (name, expected) in [
        ("bytes_acknowledged_total{connection=\"0\"}", stats.bytes_acknowledged as f64),
        ("path_bytes_acknowledged_total{connection=\"0\",path=\"0\"}", path.report.tally.delivered as f64),
        ("path_window_segments{connection=\"0\",path=\"0\"}", path.report.window),
        ("path_flight_segments{connection=\"0\",path=\"0\"}", 0.0),
        ("path_rtt_base_seconds{connection=\"0\",path=\"0\"}", path.rtt_base().unwrap().as_secs_f64()),
        ("path_datagram_bytes_max{connection=\"0\",path=\"0\"}", f64::from(path.report.datagram_max)),
        ("connection_limited{connection=\"0\",limit=\"application\"}", 1.0),
        ("connection_limited{connection=\"0\",limit=\"pacing\"}", 0.0),
    ] {
        assert_eq!(of(&format!("anabranch_{name}")), expected.to_string(), "{name}");
    }
    assert!(stats.bytes_acknowledged >= 1_000_000);
    let number = |value: &str| value.parse::<f64>().unwrap();
    let sum =
        |start: &str| samples.iter().filter(|(name, _)| name.starts_with(start)).map(|(_, value)| number(value)).sum();
    let lost: f64 = sum("anabranch_path_segments_lost_total{");
    assert_eq!(lost.to_string(), stats.segments_lost.to_string());
    let limited: f64 = sum("anabranch_connection_limited_seconds_total{");
    assert!(limited > 0.0 && limited <= begin.elapsed().as_secs_f64(), "{limited} s");
    assert_eq!(samples.keys().filter(|name| name.starts_with("anabranch_path_limited_seconds_total{")).count(), 6);
    assert_eq!(text.lines().count(), pair.client.metrics_text().lines().count());
}

/// Other requests are refused, an endless request is cut off, and a silent client is not waited for for long.
#[tokio::test]
async fn request_for_other_pages_gets_no_metrics() {
    let pair = Pair::new().await;
    let at = pair.server.serve_metrics("127.0.0.1:0".parse().unwrap()).unwrap();
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        ("hello\r\n\r\n", "400 Bad Request"),
        (&format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat((8 << 10) - 26)), "431 Request Header Fields Too Large"),
    ] {
        let answered = answer(at, request.as_bytes()).await;
        assert!(answered.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request}: {answered}");
    }
    let answered = answer(at, b"HEAD /metrics HTTP/1.1\r\n\r\n").await;
    assert!(answered.starts_with("HTTP/1.1 200 OK\r\n") && answered.ends_with("\r\n\r\n"), "{answered}");
    let begin = Instant::now();
    let mut silent = vec![];
    for _ in 0..16 {
        silent.push(TcpStream::connect(at).await.unwrap());
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let answered = answer(at, b"GET /metrics HTTP/1.1\r\n\r\n").await;
    assert!(answered.starts_with("HTTP/1.1 200 OK\r\n"), "{answered}");
    let waited = begin.elapsed();
    assert!((4.5..8.0).contains(&waited.as_secs_f64()), "sixteen are served at a time, for five seconds: {waited:?}");
}

/// When the endpoint is gone, its server stops to listen.
#[tokio::test]
async fn the_server_ends_with_its_endpoint() {
    let pair = Pair::new().await;
    let at = pair.client.serve_metrics("127.0.0.1:0".parse().unwrap()).unwrap();
    assert!(pair.client.serve_metrics(at).is_err(), "somebody listens there");
    let Pair { server, client, here, there } = pair;
    there.abort();
    drop((server, client, here, there));
    soon(async {
        while TcpStream::connect(at).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

/// Connections in three shards are counted together, and are listed in the order in which they were opened.
#[tokio::test]
async fn metrics_are_those_of_all_shards() {
    let (server, client) = (server(Config { shards: Some(3), ..Config::default() }), client(Config::default()));
    let (ticket, mut open) = (server.ticket(), vec![]);
    for _ in 0..4 {
        open.push((soon(client.connect(&ticket)).await.unwrap(), soon(server.accept()).await.unwrap()));
    }
    let text = server.metrics_text();
    let samples = samples(&text);
    assert_eq!(samples["anabranch_connections"], "4");
    let infos = text.lines().filter(|line| line.starts_with("anabranch_connection_info{"));
    let places: Vec<_> = infos.map(|line| line.split('"').nth(1).unwrap().to_owned()).collect();
    assert_eq!(places, ["0", "1", "2", "3"]);
}
