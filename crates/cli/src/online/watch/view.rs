//! The view of `anabranch watch`: the paths of a command over time, drawn or as text.

use std::collections::{BTreeMap, VecDeque};

use ratatui::Frame as Screen;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Sparkline};

use crate::online::observe::{self, PathSeen};
use crate::online::offer::{Frame, Shown};
use crate::terminal::{number, shown};

/// The history of a command.
#[derive(Default)]
pub(super) struct View {
    last: Option<Frame>,
    /// By connection and path.
    histories: BTreeMap<(u64, usize), History>,
}

/// The history of a path, the latest at the end.
#[derive(Default)]
struct History {
    /// Times, and acknowledged bytes.
    bytes: VecDeque<(f64, u64)>,
    rates: VecDeque<u64>,
    windows: VecDeque<u64>,
    rtts: VecDeque<u64>,
    queues: VecDeque<u64>,
}

impl View {
    pub(super) fn add(&mut self, frame: Frame) {
        let is_there = |(number, path): &(u64, usize)| {
            let connection = frame.connections.iter().find(|connection| connection.number == *number);
            connection.is_some_and(|connection| connection.seen.paths.iter().any(|seen| seen.id == *path))
        };
        self.histories.retain(|key, _| is_there(key));
        for Shown { number, seen } in &frame.connections {
            for path in seen.paths.iter().take(PATHS_SHOWN) {
                self.histories.entry((*number, path.id)).or_default().add(frame.seconds, path);
            }
        }
        self.last = Some(frame);
    }

    pub(super) fn has_frame(&self) -> bool {
        self.last.is_some()
    }

    /// The present state as text.
    pub(super) fn text(&self) -> String {
        let Some(frame) = &self.last else { return "nothing yet\n".to_owned() };
        let mut text = title(frame) + "\n";
        if frame.connections.is_empty() {
            text += "no connection\n";
        }
        for Shown { number, seen } in &frame.connections {
            text += &format!("connection {number}: {}\n", limits(seen.limited_by.as_deref(), &seen.limits));
            for path in &seen.paths {
                let rate = self.histories.get(&(*number, path.id)).map_or(0.0, History::rate);
                text += &format!("  {}\n    {}\n", heading(path), numbers(path, rate));
            }
        }
        text
    }

    /// Draws the present state.
    pub(super) fn draw(&self, screen: &mut Screen<'_>) {
        let area = screen.area();
        let [head, body, foot] =
            Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)]).areas(area);
        let title = self.last.as_ref().map_or_else(|| "waiting".to_owned(), title);
        screen.render_widget(Paragraph::new(title).bold(), head);
        screen.render_widget(Paragraph::new("q: end").dim(), foot);
        let Some(frame) = &self.last else { return };
        let connections = frame.connections.iter();
        let paths: Vec<_> =
            connections.flat_map(|shown| shown.seen.paths.iter().map(move |path| (shown, path))).collect();
        if paths.is_empty() {
            screen.render_widget(Paragraph::new("no connection"), body);
            return;
        }
        let fit = usize::from(body.height / PATH_LINES).max(1);
        let rows = Layout::vertical(vec![Constraint::Length(PATH_LINES); paths.len().min(fit)]).split(body);
        for ((shown, path), row) in paths.iter().zip(rows.iter()) {
            self.draw_path(screen, *row, shown, path);
        }
    }

    fn draw_path(&self, screen: &mut Screen<'_>, area: Rect, connection: &Shown, path: &PathSeen) {
        let history = self.histories.get(&(connection.number, path.id));
        let rate = history.map_or(0.0, History::rate);
        let limit = limits(path.limited_by.as_deref(), &path.limits);
        let block =
            Block::bordered().title(format!(" {} ", heading(path))).title_bottom(Line::from(format!(" {limit} ")));
        let inside = block.inner(area);
        screen.render_widget(block, area);
        let [line, charts] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(inside);
        screen.render_widget(Paragraph::new(numbers(path, rate)), line);
        let Some(history) = history else { return };
        let columns = Layout::horizontal([Constraint::Ratio(1, 4); 4]).split(charts);
        let series = [
            ("rate", &history.rates, Color::Green),
            ("window", &history.windows, Color::Cyan),
            ("RTT", &history.rtts, Color::Yellow),
            ("queue", &history.queues, Color::Red),
        ];
        for ((name, values, color), column) in series.into_iter().zip(columns.iter()) {
            let block = Block::new().title(Line::from(name).dim());
            let width = usize::from(column.width);
            let latest: Vec<u64> = values.iter().skip(values.len().saturating_sub(width)).copied().collect();
            let chart = Sparkline::default().block(block).data(latest).style(Style::new().fg(color));
            screen.render_widget(chart, *column);
        }
    }
}

impl History {
    fn add(&mut self, seconds: f64, path: &PathSeen) {
        push(&mut self.bytes, (seconds, path.bytes_acknowledged));
        let rate = self.rate();
        push(&mut self.rates, rate as u64);
        push(&mut self.windows, path.window_segments as u64);
        push(&mut self.rtts, path.rtt_latest_ms.map_or(0, |ms| (ms * 1e3) as u64));
        push(&mut self.queues, path.queue_segments.map_or(0, |segments| segments.max(0.0) as u64));
    }

    /// Bits a second over the last second, or over the time so far.
    fn rate(&self) -> f64 {
        let Some(&(end, after)) = self.bytes.back() else { return 0.0 };
        let before = self.bytes.iter().rev().find(|(seconds, _)| end - seconds >= 1.0).or_else(|| self.bytes.front());
        match before {
            Some(&(begin, before)) if end > begin => 8.0 * after.saturating_sub(before) as f64 / (end - begin),
            _ => 0.0,
        }
    }
}

fn push<T>(values: &mut VecDeque<T>, value: T) {
    if values.len() == SAMPLES_KEPT {
        values.pop_front();
    }
    values.push_back(value);
}

fn title(frame: &Frame) -> String {
    let Frame { pid, command, seconds, connections } = frame;
    format!("anabranch {} (process {pid}), {seconds:.1} s, {} connections", line(command), connections.len())
}

fn heading(path: &PathSeen) -> String {
    let state = match (path.is_live, path.is_standby) {
        (false, _) => ", silent",
        (true, true) => ", standby",
        (true, false) => "",
    };
    if path.is_relayed {
        return format!("path {}: through the relay{state}", path.id);
    }
    format!("path {}: {} to {}{state}", path.id, path.local, path.remote)
}

fn numbers(path: &PathSeen, rate: f64) -> String {
    let ms = |value: Option<f64>| value.map_or("?".to_owned(), number);
    let queue = path.queue_segments.map_or("?".to_owned(), |segments| number(segments.round()));
    format!(
        "{}  RTT {} ms (base {})  window {} (in flight {})  queue {queue}  lost {}  datagrams {} B",
        observe::rate(rate),
        ms(path.rtt_latest_ms),
        ms(path.rtt_base_ms),
        number(path.window_segments.round()),
        number(path.flight_segments.round()),
        path.segments_lost,
        path.datagram_bytes_max,
    )
}

fn limits(now: Option<&str>, shares: &observe::Shares) -> String {
    let now = now.map_or("?".to_owned(), |name| line(observe::words(name)));
    format!("limited by: {now}; so far {}", line(&observe::sentence(shares)))
}

/// A text from elsewhere, reduced to one line.
pub(super) fn line(text: &str) -> String {
    shown(text).replace(['\n', '\t'], "\u{fffd}")
}

/// A minute at ten a second.
const SAMPLES_KEPT: usize = 600;

/// A frame, a line and charts.
const PATH_LINES: u16 = 9;

/// The limit of paths of a connection.
const PATHS_SHOWN: usize = 16;

#[cfg(test)]
mod tests;
