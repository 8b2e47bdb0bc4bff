//! Whole worlds, judged by closed forms.

mod support;

#[test]
fn speed() {
    let mut d = support::highspeed(1);
    d.world.run_until("1s".parse().unwrap());
    let t = std::time::Instant::now();
    let e = d.world.events();
    let p = d.world.link(d.bottleneck).delivered;
    d.world.run_until("100s".parse().unwrap());
    let el = t.elapsed().as_secs_f64();
    let n = d.world.link(d.bottleneck).delivered - p;
    println!(
        "{n} packets {} events {:.2} s, {:.2} M packets/s {:.1} ns/event {:.0} ns/packet",
        d.world.events() - e,
        el,
        n as f64 / el / 1e6,
        el * 1e9 / (d.world.events() - e) as f64,
        el * 1e9 / n as f64
    );
    d.world.assert_conserved();
    println!("{}", d.world.hash());
}
