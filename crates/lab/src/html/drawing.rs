//! The network of an experiment as a drawing: layers from the senders on the left to the receivers on the right.
//!
//! By Sugiyama's method: every link gets a direction; a node is one layer to the right of its last predecessor; a link over several layers
//! bends around the nodes between; and each layer is ordered by the positions of its neighbours.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::reproduce::{DescribedLink, DescribedNetwork};

use super::alike::Alike;
use super::interval::shown;
use super::words;

const COLUMN: f64 = 146.0;
const ROW: f64 = 62.0;
const MARGIN_X: f64 = 42.0;
const MARGIN_TOP: f64 = 36.0;
const MARGIN_BOTTOM: f64 = 40.0;
const NODE_HEIGHT: f64 = 26.0;
/// The distance of two links between the same nodes.
const BEND: f64 = 38.0;
/// The distance of the cards of a stack.
const CARD: f64 = 3.5;
/// If a node has more flows than this, their number is shown instead of their names.
const NAMED_MAX: usize = 2;
/// The limit of nodes: a larger network is shown only by the table of its links.
const NODES_MAX: usize = 60;

/// The drawing of a network, if there is something to draw; equal parts are drawn once, as a stack.
pub(super) fn network(alike: &Alike<'_>) -> Option<Markup> {
    let topology = &alike.reduced();
    if topology.links.is_empty() || topology.nodes.len() > NODES_MAX {
        return None;
    }
    let layout = Layout::of(topology);
    let (width, height) = layout.size();
    let count = |of: usize, noun| words::count(of, noun);
    let (nodes, links) = (alike.nodes.iter().map(Vec::len).sum(), alike.links.iter().map(Vec::len).sum());
    Some(html! {
        svg.network width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } role="img"
            aria-label={ "Network of " (count(nodes, "node")) " and " (count(links, "link")) } {
            @for edge in &layout.edges {
                path class={ "link" @if edge.link.error.is_some() { " lossy" } } d=(layout.path(edge)) data-link=(edge.link.id) data-from=(edge.link.from)
                    data-to=(edge.link.to) data-begin=(topology.nodes[edge.points[0]]) {
                    title { (title(edge.link)) }
                }
            }
            @for edge in &layout.edges {
                @let (x, y) = layout.middle(edge);
                @if edge.link.error.is_some() {
                    path.loss d={ "M" (shown(x - 4.0)) " " (shown(y - 4.0)) "l8 8m0 -8l-8 8" } {}
                }
                @if layout.is_level(edge) && edge.bend != 0.0 {
                    // Outside of the bend, where no other link is.
                    (one_line(edge.link, x, y + if edge.bend < 0.0 { -8.0 } else { 16.0 }))
                } @else if layout.is_level(edge) {
                    text.rate x=(shown(x)) y=(shown(y - 7.0)) { (edge.link.rate) }
                    text.delay x=(shown(x)) y=(shown(y + 15.0)) { (edge.link.delay) }
                } @else {
                    // Slanted lines are closer to each other than two lines of text.
                    (one_line(edge.link, x, y + if edge.link.error.is_some() { -8.0 } else { 4.0 }))
                }
            }
            @for (index, name) in topology.nodes.iter().enumerate() {
                @let (x, y) = layout.place(index);
                @let width = node_width(name);
                @let (sends, receives) = users(topology, name);
                g class={ "node" @if sends.is_some() || receives.is_some() { " end" } } {
                    @if alike.nodes[index].len() > 1 {
                        @for card in [2.0, 1.0] {
                            rect x=(shown(x - width / 2.0 + card * CARD)) y=(shown(y - NODE_HEIGHT / 2.0 - card * CARD)) width=(shown(width)) height=(NODE_HEIGHT) rx="13" {}
                        }
                        text.times x=(shown(x)) y=(shown(y - NODE_HEIGHT / 2.0 - 2.0 * CARD - 3.0)) { "× " (alike.nodes[index].len()) }
                    }
                    rect x=(shown(x - width / 2.0)) y=(shown(y - NODE_HEIGHT / 2.0)) width=(shown(width)) height=(NODE_HEIGHT) rx="13" {}
                    text x=(shown(x)) y=(shown(y + 4.0)) { (name) }
                }
                @let lines = [sends.map(|flows| format!("{flows} →")), receives.map(|flows| format!("→ {flows}"))];
                @for (line, text) in lines.iter().flatten().enumerate() {
                    text.flow x=(shown(x)) y=(shown(y + NODE_HEIGHT / 2.0 + 12.0 + 11.0 * line as f64)) { (text) }
                }
            }
        }
    })
}

/// Rate and delay on one line. Below it the same text is wider, in the colour of the paper, so that a link is not seen between the words.
fn one_line(link: &DescribedLink, x: f64, y: f64) -> Markup {
    html! {
        text.halo x=(shown(x)) y=(shown(y)) aria-hidden="true" { (link.rate) ", " (link.delay) }
        text.one x=(shown(x)) y=(shown(y)) { tspan.rate { (link.rate) } ", " (link.delay) }
    }
}

/// The flows that begin at a node, and those that end there.
fn users(topology: &DescribedNetwork, node: &str) -> (Option<String>, Option<String>) {
    let named = |flows: Vec<&str>| match flows.len() {
        0 => None,
        1..=NAMED_MAX => Some(flows.join(", ")),
        many => Some(words::count(many, "flow")),
    };
    let begin = topology.flows.iter().filter(|flow| flow.from == node).map(|flow| flow.id.as_str()).collect();
    let end = topology.flows.iter().filter(|flow| flow.to == node).map(|flow| flow.id.as_str()).collect();
    (named(begin), named(end))
}

fn title(link: &DescribedLink) -> String {
    let DescribedLink { id, rate, delay, queue, error, .. } = link;
    let error = error.as_ref().map_or(String::new(), |error| format!(", loses {error}"));
    format!("{id}: {rate}, {delay}, {queue}{error}")
}

/// The width of a node: about seven pixels a letter.
fn node_width(name: &str) -> f64 {
    (name.chars().count() as f64 * 7.2 + 14.0).max(NODE_HEIGHT)
}

/// The line that names flows, with its arrow, is in smaller type.
fn flow_width(flows: &str) -> f64 {
    (flows.chars().count() + 2) as f64 * 5.8
}

struct Layout<'a> {
    /// The layer of each node, then of the bends of long links.
    layers: Vec<usize>,
    /// The margin on either side: half of the widest node there.
    margin_x: f64,
    /// The place in the layer, counted from its middle.
    rows: Vec<f64>,
    edges: Vec<Edge<'a>>,
}

struct Edge<'a> {
    link: &'a DescribedLink,
    /// The points from one end over the bends to the other, from left to right.
    points: Vec<usize>,
    /// The sideways shift in units of [`BEND`]; not zero for parallel links.
    bend: f64,
}

impl<'a> Layout<'a> {
    fn of(topology: &'a DescribedNetwork) -> Self {
        let index: BTreeMap<&str, usize> =
            topology.nodes.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
        let ends = |link: &DescribedLink| Some((*index.get(link.from.as_str())?, *index.get(link.to.as_str())?));
        // A reverse direction that differs from its link follows it in the list; in the drawing both are one line.
        let links: Vec<(&DescribedLink, usize, usize)> = topology
            .links
            .iter()
            .filter(|link| !link.id.ends_with(".reverse"))
            .filter_map(|link| ends(link).map(|(from, to)| (link, from, to)))
            .collect();
        let count = topology.nodes.len();
        let mut directed = directed(topology, &links, Tie::ByLink);
        if has_circle(count, &directed) {
            directed = self::directed(topology, &links, Tie::ByNode);
        }
        let mut layers = layers(count, &directed);
        let mut edges: Vec<Edge<'a>> = Vec::new();
        for (&(link, ..), &(left, right)) in links.iter().zip(&directed) {
            let mut points = vec![left];
            for layer in layers[left] + 1..layers[right] {
                points.push(layers.len());
                layers.push(layer);
            }
            points.push(right);
            edges.push(Edge { link, points, bend: 0.0 });
        }
        spread(&mut edges);
        let rows = rows(&layers, &edges);
        let widths = topology.nodes.iter().map(|name| {
            let (sends, receives) = users(topology, name);
            let flows = [sends, receives].into_iter().flatten().map(|flows| flow_width(&flows));
            flows.fold(node_width(name) + 4.0 * CARD + 2.0, f64::max)
        });
        let margin_x = widths.fold(MARGIN_X, |margin, width| margin.max(width / 2.0));
        Self { layers, margin_x, rows, edges }
    }

    fn size(&self) -> (f64, f64) {
        let last = self.layers.iter().max().copied().unwrap_or(0) as f64;
        (2.0 * self.margin_x + last * COLUMN, MARGIN_TOP + MARGIN_BOTTOM + 2.0 * self.extent() * ROW)
    }

    /// The largest distance of a row from the middle.
    fn extent(&self) -> f64 {
        self.rows.iter().fold(0.0, |extent, row| row.abs().max(extent))
    }

    fn place(&self, point: usize) -> (f64, f64) {
        (self.margin_x + self.layers[point] as f64 * COLUMN, MARGIN_TOP + (self.rows[point] + self.extent()) * ROW)
    }

    fn path(&self, edge: &Edge<'_>) -> String {
        let (x, y) = self.place(edge.points[0]);
        let mut path = format!("M{} {}", shown(x), shown(y));
        for pair in edge.points.windows(2) {
            let ((x0, y0), (x1, y1)) = (self.place(pair[0]), self.place(pair[1]));
            let ((cx, cy), _) = bent(edge, (x0, y0), (x1, y1));
            path += &match edge.bend == 0.0 {
                true => format!("L{} {}", shown(x1), shown(y1)),
                false => format!("Q{} {} {} {}", shown(cx), shown(cy), shown(x1), shown(y1)),
            };
        }
        path
    }

    /// Whether the label of an edge is on a horizontal line.
    fn is_level(&self, edge: &Edge<'_>) -> bool {
        let segment = (edge.points.len() - 2) / 2;
        let (left, right) = (edge.points[segment], edge.points[segment + 1]);
        (self.rows[left] - self.rows[right]).abs() < 0.1
    }

    /// The place of an edge's label.
    fn middle(&self, edge: &Edge<'_>) -> (f64, f64) {
        let segment = (edge.points.len() - 2) / 2;
        let ends = (self.place(edge.points[segment]), self.place(edge.points[segment + 1]));
        bent(edge, ends.0, ends.1).1
    }
}

/// The control point of a bent line, and the middle of the line.
fn bent(edge: &Edge<'_>, (x0, y0): (f64, f64), (x1, y1): (f64, f64)) -> ((f64, f64), (f64, f64)) {
    let (x, y) = ((x0 + x1) / 2.0, (y0 + y1) / 2.0);
    let length = ((x1 - x0) * (x1 - x0) + (y1 - y0) * (y1 - y0)).sqrt().max(1.0);
    let (aside_x, aside_y) = ((y0 - y1) / length * edge.bend * BEND, (x1 - x0) / length * edge.bend * BEND);
    ((x + 2.0 * aside_x, y + 2.0 * aside_y), (x + aside_x, y + aside_y))
}

/// The direction of a link between nodes that are equally far from the first sender.
#[derive(Clone, Copy)]
enum Tie {
    /// The direction in the file.
    ByLink,
    /// From the node that the file names first. Then there is no cycle, as all links except those of leaves follow one order.
    ByNode,
}

/// Whether the links contain a cycle: then there is a path with as many links as nodes.
fn has_circle(count: usize, directed: &[(usize, usize)]) -> bool {
    let mut steps = vec![0; count];
    for _ in 0..count {
        for &(left, right) in directed.iter().filter(|(left, right)| left != right) {
            steps[right] = steps[right].max(steps[left] + 1);
        }
    }
    steps.iter().any(|&steps| steps >= count)
}

/// The direction of each link from left to right: away from the first sender, and away from nodes that only send.
fn directed(topology: &DescribedNetwork, links: &[(&DescribedLink, usize, usize)], tie: Tie) -> Vec<(usize, usize)> {
    let count = topology.nodes.len();
    let neighbours = |node: usize| {
        links.iter().filter_map(move |&(_, from, to)| match node {
            _ if node == from => Some(to),
            _ if node == to => Some(from),
            _ => None,
        })
    };
    let first = topology.flows.first().and_then(|flow| topology.nodes.iter().position(|node| *node == flow.from));
    let mut distances = vec![usize::MAX; count];
    for start in first.into_iter().chain(0..count) {
        if distances[start] != usize::MAX {
            continue;
        }
        distances[start] = 0;
        let mut queue = vec![start];
        let mut next = 0;
        while let Some(&node) = queue.get(next) {
            for neighbour in neighbours(node).filter(|&neighbour| neighbour != node) {
                if distances[neighbour] == usize::MAX {
                    distances[neighbour] = distances[node] + 1;
                    queue.push(neighbour);
                }
            }
            next += 1;
        }
    }
    let is_leaf = |node: usize| neighbours(node).count() == 1;
    let sends = |node: usize| topology.flows.iter().any(|flow| flow.from == topology.nodes[node]);
    let receives = |node: usize| topology.flows.iter().any(|flow| flow.to == topology.nodes[node]);
    let begins = |node: usize| is_leaf(node) && sends(node) && !receives(node);
    let direct = |&(_, from, to): &(&DescribedLink, usize, usize)| {
        let rank = |node: usize| match tie {
            Tie::ByLink => (distances[node], 0),
            Tie::ByNode => (distances[node], node),
        };
        let ordered = if rank(from) <= rank(to) { (from, to) } else { (to, from) };
        match (begins(from), begins(to)) {
            (true, false) => (from, to),
            (false, true) => (to, from),
            _ => ordered,
        }
    };
    links.iter().map(direct).collect()
}

/// The layer of each node.
fn layers(count: usize, directed: &[(usize, usize)]) -> Vec<usize> {
    let mut layers = vec![0; count];
    // A path has at most as many links as there are nodes.
    for _ in 0..count {
        for &(left, right) in directed.iter().filter(|(left, right)| left != right) {
            layers[right] = layers[right].max(layers[left] + 1);
        }
    }
    // A node without a predecessor is placed next to its successor.
    for node in 0..count {
        let has_left = directed.iter().any(|&(left, right)| right == node && left != node);
        let rights = directed.iter().filter(|&&(left, right)| left == node && right != node);
        if let (false, Some(right)) = (has_left, rights.map(|&(_, right)| layers[right]).min()) {
            layers[node] = right - 1;
        }
    }
    layers
}

/// Separates parallel links.
fn spread(edges: &mut [Edge<'_>]) {
    let ends: Vec<Vec<usize>> = edges.iter().map(|edge| edge.points.clone()).collect();
    for (index, edge) in edges.iter_mut().enumerate().filter(|(_, edge)| edge.points.len() == 2) {
        let same: Vec<usize> = (0..ends.len()).filter(|&other| ends[other] == ends[index]).collect();
        let place = same.iter().position(|&other| other == index).unwrap_or(0);
        edge.bend = place as f64 - (same.len() as f64 - 1.0) / 2.0;
    }
}

/// The place of each point in its layer.
fn rows(layers: &[usize], edges: &[Edge<'_>]) -> Vec<f64> {
    let mut rows = vec![0.0; layers.len()];
    let count = layers.iter().max().map_or(0, |last| last + 1);
    let mut order: Vec<Vec<usize>> =
        (0..count).map(|layer| (0..layers.len()).filter(|&point| layers[point] == layer).collect()).collect();
    let settle = |order: &[Vec<usize>], rows: &mut Vec<f64>| {
        for layer in order {
            for (place, &point) in layer.iter().enumerate() {
                rows[point] = place as f64 - (layer.len() as f64 - 1.0) / 2.0;
            }
        }
    };
    settle(&order, &mut rows);
    // From left to right and back, twice: more sweeps change nothing in networks of this size.
    for sweep in 0..4 {
        let mut visited: Vec<usize> = (0..count).collect();
        if sweep % 2 == 1 {
            visited.reverse();
        }
        for layer in visited {
            let wanted = |point: usize| {
                let beside = edges.iter().flat_map(|edge| edge.points.windows(2)).filter_map(|pair| match pair {
                    [left, right] if *right == point && sweep % 2 == 0 => Some(rows[*left]),
                    [left, right] if *left == point && sweep % 2 == 1 => Some(rows[*right]),
                    _ => None,
                });
                let beside: Vec<f64> = beside.collect();
                if beside.is_empty() { rows[point] } else { beside.iter().sum::<f64>() / beside.len() as f64 }
            };
            let mut places: Vec<(f64, usize)> = order[layer].iter().map(|&point| (wanted(point), point)).collect();
            places.sort_by(|a, b| a.0.total_cmp(&b.0));
            order[layer] = places.into_iter().map(|(_, point)| point).collect();
            settle(&order, &mut rows);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::DescribedFlow;

    fn topology(links: &[(&str, &str)], flows: &[(&str, &str)]) -> DescribedNetwork {
        let mut nodes: Vec<String> = Vec::new();
        for name in links.iter().flat_map(|&(from, to)| [from, to]) {
            if !nodes.iter().any(|node| node == name) {
                nodes.push(name.to_owned());
            }
        }
        let link = |(index, &(from, to)): (usize, &(&str, &str))| DescribedLink {
            id: format!("l{index}"),
            from: from.to_owned(),
            to: to.to_owned(),
            rate: "1Mbit/s".to_owned(),
            delay: "1ms".to_owned(),
            queue: "unlimited".to_owned(),
            error: None,
            is_duplex: true,
        };
        let flow = |(index, &(from, to)): (usize, &(&str, &str))| DescribedFlow {
            id: format!("f{index}"),
            from: from.to_owned(),
            to: to.to_owned(),
            transport: "ns2/sack".to_owned(),
        };
        let links = links.iter().enumerate().map(link).collect();
        DescribedNetwork { nodes, links, flows: flows.iter().enumerate().map(flow).collect() }
    }

    /// Layer of each node, and its row.
    #[track_caller]
    fn assert_places(topology: &DescribedNetwork, expected: &[(&str, usize, f64)]) {
        let layout = Layout::of(topology);
        let places = topology
            .nodes
            .iter()
            .enumerate()
            .map(|(index, name)| (name.as_str(), layout.layers[index], layout.rows[index]));
        assert_eq!(places.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_dumbbell_is_symmetric() {
        let dumbbell = topology(
            &[("s1", "r1"), ("s2", "r1"), ("r1", "r2"), ("r2", "d1"), ("r2", "d2")],
            &[("s1", "d1"), ("s2", "d2")],
        );
        let places = [("s1", 0, -0.5), ("r1", 1, 0.0), ("s2", 0, 0.5), ("r2", 2, 0.0), ("d1", 3, -0.5), ("d2", 3, 0.5)];
        assert_places(&dumbbell, &places);
    }

    #[test]
    fn cross_traffic_begins_beside_its_router() {
        let chain = topology(&[("n0", "r1"), ("r1", "r2"), ("r2", "n1"), ("x", "r2")], &[("n0", "n1"), ("x", "n1")]);
        let places = [("n0", 0, 0.0), ("r1", 1, -0.5), ("r2", 2, 0.0), ("n1", 3, 0.0), ("x", 1, 0.5)];
        assert_places(&chain, &places);
    }

    #[test]
    fn a_way_around_passes_beside_the_direct_one() {
        let detour = topology(&[("a", "b"), ("b", "c"), ("b", "e"), ("e", "c"), ("c", "d")], &[("a", "d")]);
        let layout = Layout::of(&detour);
        assert_eq!(layout.edges[1].points.len(), 3, "the direct link bends around e");
        let (bend, e) = (layout.edges[1].points[1], 3);
        assert_eq!(layout.layers[..5], [0, 1, 3, 2, 4]);
        assert!((layout.rows[bend] - layout.rows[e]).abs() > 0.9);
    }

    #[test]
    fn a_circle_has_layers_too() {
        let circle = topology(&[("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("c", "d"), ("d", "b")], &[("a", "d")]);
        let layout = Layout::of(&circle);
        assert!(layout.layers.iter().all(|&layer| layer < 4), "{:?}", layout.layers);
    }

    #[test]
    fn links_side_by_side_do_not_cover_each_other() {
        let two = topology(&[("a", "b"), ("a", "b")], &[("a", "b")]);
        let layout = Layout::of(&two);
        assert_ne!(layout.path(&layout.edges[0]), layout.path(&layout.edges[1]));
    }

    /// The labels of two links side by side are further apart than the links: what is between them would be of either.
    #[test]
    fn labels_of_links_side_by_side_are_outside() {
        let two = topology(&[("a", "b"), ("a", "b")], &[("a", "b")]);
        let drawn = network(&Alike::of(&two, &[])).unwrap().into_string();
        let heights: Vec<f64> = drawn
            .match_indices("class=\"one\"")
            .map(|(at, _)| drawn[at..].split("y=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
            .collect();
        assert!(heights[1] - heights[0] > BEND, "{heights:?}");
    }
}
