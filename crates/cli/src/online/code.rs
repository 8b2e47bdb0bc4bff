//! Tickets as QR codes on a terminal.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Color, Style};
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};

/// Dark on light, for any colours of the terminal.
const PAPER: Style =
    Style::new().fg_color(Some(Color::Ansi(AnsiColor::Black))).bg_color(Some(Color::Ansi(AnsiColor::BrightWhite)));

/// The lines of a QR code of `ticket`, two modules a character high, with the margin that the standard requires.
pub(super) fn qr(ticket: &str) -> String {
    // In capitals a letter takes five and a half bits instead of eight; a ticket is the same in either case.
    let code = QrCode::with_error_correction_level(ticket.to_ascii_uppercase(), EcLevel::L);
    let code = code.expect("a ticket is much shorter than the longest code");
    let picture = code.render::<Dense1x2>().build();
    let mut lines = String::new();
    for line in picture.lines() {
        _ = writeln!(lines, "{PAPER}{line}{PAPER:#}");
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes the picture with an independent reader, with `scale` pixels a module.
    fn read(picture: &str, scale: usize) -> String {
        let rows: Vec<Vec<char>> =
            anstream::adapter::strip_str(picture).to_string().lines().map(|line| line.chars().collect()).collect();
        let (width, height) = (rows[0].len() * scale, rows.len() * 2 * scale);
        let is_dark = |x: usize, y: usize| match rows[y / scale / 2][x / scale] {
            ' ' => false,
            '█' => true,
            '▀' => (y / scale).is_multiple_of(2),
            '▄' => !(y / scale).is_multiple_of(2),
            other => panic!("{other:?} is no part of a code"),
        };
        let mut image =
            rqrr::PreparedImage::prepare_from_greyscale(width, height, |x, y| if is_dark(x, y) { 0 } else { 255 });
        let grids = image.detect_grids();
        let [grid] = &grids[..] else { panic!("{} codes instead of one:\n{picture}", grids.len()) };
        grid.decode().expect("it can be read").1
    }

    #[test]
    fn a_reader_finds_the_ticket_in_it() {
        // The shortest ticket, and one with the most IPv6 addresses.
        for letters in [62, 3 + 600] {
            let ticket = "ab1".chars().chain(('a'..='z').chain('2'..='7').cycle()).take(letters).collect::<String>();
            assert_eq!(read(&qr(&ticket), 3).to_ascii_lowercase(), ticket);
        }
    }

    #[test]
    fn it_fits_a_terminal() {
        let ticket = "ab1".to_owned() + &"q".repeat(96);
        let picture = qr(&ticket);
        let widest = picture.lines().map(|line| anstream::adapter::strip_str(line).to_string().chars().count()).max();
        assert!(widest <= Some(80), "{widest:?} columns");
        assert!(picture.lines().count() <= 24, "{} lines", picture.lines().count());
    }
}
