//! The trace of a connection, compared with what its link did.

use super::*;

/// The queue of a link overflows in slow start, and later the link is cut. Each lost packet is traced once for each time that the
/// counters count it, with the kind of detection. Arrived segments had been sent, and times are in order.
#[test]
fn a_trace_tells_what_the_tally_counts() {
    let mut room = Room::new(vec![endpoint(0, config(Some(server()))), endpoint(1, config(None))]);
    room.ends.iter_mut().for_each(|end| end.endpoint.trace());
    room.links.insert(address(1), Link::new(1500));
    let client = room.call(1, 0, 1);
    room.run_for(ms(100));
    let server = room.ends[0].events.first().expect("it is established").connection;
    let sid = room.write(1, client, 400_000);
    // Waiting events are limited, so they are taken all the time.
    let (mut sent, mut received) = (vec![], vec![]);
    let mut run = |room: &mut Room, steps: u64, sent: &mut Vec<TraceEvent>| {
        for _ in 0..steps {
            room.run_for(ms(10));
            let taken = [(1, client), (0, server)].map(|(end, id)| room.ends[end].endpoint.trace_of(id));
            for (traces, all) in taken.into_iter().zip([&mut *sent, &mut received]) {
                let Some(traces) = traces else { continue };
                assert_eq!(traces.dropped, 0);
                all.extend(traces.events);
            }
        }
    };
    run(&mut room, 300, &mut sent);
    assert_eq!(room.read(0, server, sid), (400_000, true));
    room.lost = Some(address(0));
    room.write(1, client, 1000);
    run(&mut room, 300, &mut sent);
    let tally = room.end(1, client).path(PathId::FIRST).expect("it is there").tally;
    assert!(tally.lost > tally.lost_by_timeout && tally.lost_by_timeout > 0, "{tally:?}");
    let lost = |by: bool| {
        sent.iter().filter(move |event| matches!(event.what, Traced::Lost { by_timeout, .. } if by_timeout == by))
    };
    assert_eq!(lost(true).count() as u64, tally.lost_by_timeout);
    assert_eq!(lost(false).count() as u64, tally.lost - tally.lost_by_timeout);
    let content = |event: &TraceEvent, is_sent: bool| match event.what {
        Traced::Sent(segment) if is_sent && segment.space > 0 => Some(segment),
        Traced::Received(segment) if !is_sent && segment.space > 0 => Some(segment),
        _ => None,
    };
    let left: Vec<_> = sent.iter().filter_map(|event| content(event, true)).collect();
    assert_eq!(left.iter().filter(|segment| !segment.flags.contains(crate::Flags::SYN)).count() as u64, tally.sent);
    let came: Vec<_> = received.iter().filter_map(|event| content(event, false)).collect();
    assert!(came.len() > 250 && came.len() < left.len());
    for segment in &came {
        let is_same =
            |it: &&TracedSegment| (it.offset, it.space, it.stream) == (segment.offset, segment.space, segment.stream);
        assert!(left.iter().any(|it| is_same(&it)), "{segment:?} never left");
    }
    assert!(sent.is_sorted_by_key(|event| event.at) && received.is_sorted_by_key(|event| event.at));
    // Tracing is stopped.
    room.ends[1].endpoint.stop_trace();
    room.run_for(ms(1000));
    assert!(room.ends[1].endpoint.trace_of(client).is_none());
}
