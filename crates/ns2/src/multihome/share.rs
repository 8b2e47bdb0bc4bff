//! Divides the advertised window among the paths.

use super::PATHS_MAX;

/// The shares of `rbuf` packets for paths with these windows: proportional, whole packets, at least one each, with the sum `rbuf`
/// (multihoming-2010 sec. III). A window counts as at most `rbuf`, because FAST's window grows without bound where the receiver
/// limits it.
///
/// # Panics
/// If there are fewer packets than paths, or more paths than [`PATHS_MAX`].
pub fn shares(rbuf: i32, windows: impl Iterator<Item = f64> + Clone) -> impl Iterator<Item = i32> {
    let most = f64::from(rbuf);
    let windows = windows.map(move |window| window.clamp(f64::MIN_POSITIVE, most));
    let total: f64 = windows.clone().sum();
    let mut parts = [0; PATHS_MAX];
    // Each share ends at the rounded cumulative sum of the windows, so rounding loses nothing.
    let (mut sum, mut end, mut count) = (0.0, 0, 0);
    for window in windows {
        sum += window;
        let next = (sum / total * most) as i32;
        parts[count] = next - end;
        (end, count) = (next, count + 1);
    }
    assert!(usize::try_from(rbuf).is_ok_and(|rbuf| rbuf >= count), "a packet for each path");
    let given = &mut parts[..count];
    while let Some(empty) = given.iter().position(|&part| part == 0) {
        let largest = (0..count).max_by_key(|&path| given[path]).expect("there is a path");
        given[largest] -= 1;
        given[empty] += 1;
    }
    debug_assert_eq!(given.iter().sum::<i32>(), rbuf);
    parts.into_iter().take(count)
}
