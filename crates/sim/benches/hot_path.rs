//! The cost of an event and of a hop, and the speed of the two standard worlds.

#[path = "../tests/world/standard.rs"]
mod standard;

use std::hint::black_box;
use std::time::Duration;

use anabranch_sim::{EventQueue, Key, Next, Order};
use anabranch_units::{SimSpan, SimTime};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

/// Takes the next event and schedules another one of the same source, with n sources at different rates.
fn event_queue(c: &mut Criterion) {
    let mut group = c.benchmark_group("event_queue");
    for sources in [8_usize, 32, 256, 4096] {
        let (mut queue, mut order) = (EventQueue::new(sources), Order::default());
        for slot in 0..sources {
            queue.set(slot, Key::new(SimTime::from_ticks(slot as u64), SimTime::ZERO, order.draw()));
        }
        group.throughput(Throughput::Elements(1));
        group.bench_function(sources.to_string(), |b| {
            b.iter(|| {
                let Next { key: Key { time, .. }, slot } = queue.next();
                let later = SimSpan::from_ticks(1000 + 37 * slot as u64);
                queue.set(slot, Key::new(time + later, time, order.draw()));
            });
        });
    }
}

/// A tenth of a second of `highspeed` in its steady state: 6667 packets over the bottleneck, each of which makes three hops
/// and its acknowledgement three more.
fn highspeed(c: &mut Criterion) {
    let mut group = c.benchmark_group("highspeed");
    let mut dumbbell = standard::highspeed(1);
    dumbbell.world.run_until(standard::millis(1000));
    let before = dumbbell.world.link(dumbbell.bottleneck).delivered;
    dumbbell.world.run_until(standard::millis(2000));
    let a_second = dumbbell.world.link(dumbbell.bottleneck).delivered - before;
    for (name, elements) in [("bottleneck packets", a_second / 10), ("hops", a_second / 10 * 6)] {
        group.throughput(Throughput::Elements(elements));
        group.bench_function(name, |b| {
            b.iter(|| {
                let until = dumbbell.world.now() + SimSpan::from_millis(100);
                dumbbell.world.run_until(until);
            });
        });
    }
}

/// A whole run of `small`, building included.
fn small(c: &mut Criterion) {
    let mut group = c.benchmark_group("small");
    group.measurement_time(Duration::from_secs(3));
    group.bench_function("100 s", |b| {
        b.iter_batched(
            || 1,
            |seed| {
                let mut world = standard::small(seed);
                world.run_until(standard::millis(100_000));
                black_box(world.hash())
            },
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, event_queue, highspeed, small);
criterion_main!(benches);
