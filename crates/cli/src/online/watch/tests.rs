use super::*;

const PATH: &str = r#"{"id":0,"local":"192.0.2.1:7","remote":"192.0.2.2:9","is_live":true,"is_standby":false,"segments_sent":0,"segments_lost":0,
    "segments_lost_by_timeout":0,"segments_doubled":0,"bytes_acknowledged":0,"window_segments":1.0,"flight_segments":0.0,"queue_segments":null,"rtt_ms":null,
    "rtt_latest_ms":null,"rtt_base_ms":null,"delivery_bits_per_second":null,"pacing_bits_per_second":null,"datagram_bytes_max":1452,"limited_by":null,
    "limits":{}}"#;

/// A line with `connections` connections of `paths` paths.
fn line(connections: usize, paths: usize) -> String {
    let paths = vec![PATH.replace('\n', ""); paths].join(",");
    let connection = format!(
        r#"{{"number":0,"bytes_acknowledged":0,"bytes_received":0,"bytes_unread":0,"segments_sent":0,"segments_sent_again":0,"segments_lost":0,"timeouts":0,
        "limited_by":null,"limits":{{}},"paths":[{paths}]}}"#
    );
    let connections = vec![connection.replace('\n', ""); connections].join(",");
    format!("{{\"pid\":1,\"command\":\"send\",\"seconds\":1.0,\"connections\":[{connections}]}}\n")
}

#[test]
fn a_line_is_a_frame() {
    let text = [line(1, 2), line(0, 0)].concat();
    let mut lines = text.as_bytes();
    assert_eq!(read(&mut lines).unwrap().connections[0].seen.paths.len(), 2);
    assert!(read(&mut lines).unwrap().connections.is_empty());
    assert!(read(&mut lines).is_none());
}

/// A line has a limit of length, and a frame has at most as many connections and paths as a command shows.
#[test]
fn a_frame_has_a_length() {
    let frame = read(&mut line(40, 20).as_bytes()).unwrap();
    assert_eq!([frame.connections.len(), frame.connections[0].seen.paths.len()], [16, 16]);
    let long = |blanks: usize| line(0, 0).replace("\"send\"", &format!("{}\"send\"", " ".repeat(blanks)));
    let room = LINE_MAX as usize - line(0, 0).len();
    assert!(read(&mut long(room).as_bytes()).is_some());
    let mut lines = std::io::BufReader::new(std::io::repeat(b' '));
    assert!(read(&mut lines).is_none(), "a line without an end");
    assert!(read(&mut long(room + 2).as_bytes()).is_none());
    for wrong in ["\n", "null\n", "{}\n", "{\"pid\":-1}\n", "\u{fffd}\n"] {
        assert!(read(&mut wrong.as_bytes()).is_none(), "{wrong:?}");
    }
}
