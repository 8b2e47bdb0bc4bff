//! The advertised window, divided over the paths.

/// The parts of `rbuf` packets for paths with these windows: in proportion, whole packets, at least one each, `rbuf` in sum
/// (multihoming-2010 sec. III). A window counts up to `rbuf`: FAST's grows without end where the receiver limits it.
///
/// # Panics
/// If there are fewer packets than paths.
pub fn shares(rbuf: i32, windows: impl Iterator<Item = f64> + Clone) -> impl Iterator<Item = i32> {
    let most = f64::from(rbuf);
    let windows = windows.map(move |window| window.clamp(f64::MIN_POSITIVE, most));
    let total: f64 = windows.clone().sum();
    let mut parts: Vec<i32> = Vec::with_capacity(windows.clone().count());
    assert!(usize::try_from(rbuf).is_ok_and(|rbuf| rbuf >= parts.capacity()), "a packet for each path");
    // Each part ends where the sum of the windows up to it does; so nothing is lost to rounding.
    let (mut sum, mut end) = (0.0, 0);
    for window in windows {
        sum += window;
        let next = (sum / total * most) as i32;
        parts.push(next - end);
        end = next;
    }
    while let Some(empty) = parts.iter().position(|&part| part == 0) {
        let largest = (0..parts.len()).max_by_key(|&path| parts[path]).expect("there is a path");
        parts[largest] -= 1;
        parts[empty] += 1;
    }
    debug_assert_eq!(parts.iter().sum::<i32>(), rbuf);
    parts.into_iter()
}
