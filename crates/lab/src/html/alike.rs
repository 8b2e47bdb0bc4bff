//! Groups equal parts of a network: twenty senders, each on its own access link of the same kind, are shown as one.

use std::collections::BTreeSet;

use crate::reproduce::{DescribedFlow, DescribedLink, DescribedNetwork, VariedAxis};

/// The least size of a group. Fewer elements are as quickly read one by one.
const ALIKE_MIN: usize = 4;

/// A network in groups of equal parts. A part that equals no other is a group of one.
pub(super) struct Alike<'a> {
    pub(super) nodes: Vec<Vec<&'a str>>,
    pub(super) links: Vec<Vec<&'a DescribedLink>>,
    pub(super) flows: Vec<Vec<&'a DescribedFlow>>,
}

impl<'a> Alike<'a> {
    /// Leaves are equal if their names differ only in numbers, and they are connected to the same node by equal links, with equal flows.
    /// Parts that an axis varies equal only parts that the same axis varies.
    pub(super) fn of(topology: &'a DescribedNetwork, axes: &[VariedAxis]) -> Self {
        let names = topology.nodes.iter().map(String::as_str);
        let nodes = grouped(names, |name| leaf(topology, axes, name));
        let place = |name: &str| nodes.iter().position(|group| group.contains(&name));
        let is_stacked = |place: Option<usize>| place.is_some_and(|place| nodes[place].len() > 1);
        let links = grouped(topology.links.iter(), |link| {
            let ends = [place(&link.from), place(&link.to)];
            ends.iter().any(|&end| is_stacked(end)).then(|| (ends, kind(axes, link)))
        });
        let flows = grouped(topology.flows.iter(), |flow| {
            Some((
                [place(&flow.from), place(&flow.to)],
                flow.transport.as_str(),
                axis_of_flow(axes, flow),
                stem(&flow.id),
            ))
        });
        Self { nodes, links, flows }
    }

    /// The network with one part of each group, with the name of the group.
    pub(super) fn reduced(&self) -> DescribedNetwork {
        let name = |node: &str| {
            let group = self.nodes.iter().find(|group| group.contains(&node));
            group.map_or_else(|| node.to_owned(), |group| range(group.iter().copied()))
        };
        let link = |group: &Vec<&DescribedLink>| DescribedLink {
            id: range(group.iter().map(|link| link.id.as_str())),
            from: name(&group[0].from),
            to: name(&group[0].to),
            ..group[0].clone()
        };
        let flow = |group: &Vec<&DescribedFlow>| DescribedFlow {
            id: range(group.iter().map(|flow| flow.id.as_str())),
            from: name(&group[0].from),
            to: name(&group[0].to),
            transport: group[0].transport.clone(),
        };
        DescribedNetwork {
            nodes: self.nodes.iter().map(|group| range(group.iter().copied())).collect(),
            links: self.links.iter().map(link).collect(),
            flows: self.flows.iter().map(flow).collect(),
        }
    }
}

/// The first and the last of several names: `S0 … S9`.
pub(super) fn range<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut different: Vec<&str> = Vec::new();
    for name in names {
        if !different.contains(&name) {
            different.push(name);
        }
    }
    match different.as_slice() {
        [first, .., last] => format!("{first} … {last}"),
        [only] => (*only).to_owned(),
        [] => String::new(),
    }
}

/// The axis that varies a key of the scenario or a key below it, if there is one.
pub(super) fn axis_of<'a>(axes: &'a [VariedAxis], key: &str) -> Option<&'a str> {
    // `flow.f*.cc` varies the `cc` of every flow whose name begins with f.
    let is_like = |(varied, part): (&str, &str)| match varied.strip_suffix('*') {
        Some(beginning) => part.starts_with(beginning),
        None => varied == part,
    };
    let varies = |varied: &String| {
        varied.split('.').count() >= key.split('.').count() && varied.split('.').zip(key.split('.')).all(is_like)
    };
    axes.iter().find(|axis| axis.keys.iter().any(varies)).map(|axis| axis.name.as_str())
}

/// The axis that varies the transport of a flow.
pub(super) fn axis_of_flow<'a>(axes: &'a [VariedAxis], flow: &DescribedFlow) -> Option<&'a str> {
    axis_of(axes, &format!("flow.{}.transport", flow.id))
}

/// The axis that varies a property of a link.
pub(super) fn axis_of_link<'a>(axes: &'a [VariedAxis], link: &DescribedLink, property: &str) -> Option<&'a str> {
    axis_of(axes, &format!("link.{}.{property}", link.id))
}

/// Groups the members of one kind at the place of the first one, if there are enough; members without a kind stay alone.
fn grouped<T: Copy, K: PartialEq>(members: impl Iterator<Item = T>, kind: impl Fn(T) -> Option<K>) -> Vec<Vec<T>> {
    let members: Vec<(T, Option<K>)> = members.map(|member| (member, kind(member))).collect();
    let group = |(index, (member, kind)): (usize, &(T, Option<K>))| {
        let is_like = |(_, (_, other)): &(usize, &(T, Option<K>))| kind.is_some() && kind == other;
        let like: Vec<usize> = members.iter().enumerate().filter(is_like).map(|(place, _)| place).collect();
        match like.first() {
            Some(first) if like.len() >= ALIKE_MIN => {
                (*first == index).then(|| like.iter().map(|&place| members[place].0).collect())
            }
            _ => Some(vec![*member]),
        }
    };
    members.iter().enumerate().filter_map(group).collect()
}

/// The kind of a leaf; `None` for a node that is connected to several others, or to none.
fn leaf<'a>(topology: &'a DescribedNetwork, axes: &'a [VariedAxis], name: &str) -> Option<impl PartialEq + use<'a>> {
    let links: Vec<&DescribedLink> =
        topology.links.iter().filter(|link| link.from == name || link.to == name).collect();
    let other = |link: &&'a DescribedLink| if link.from == name { link.to.as_str() } else { link.from.as_str() };
    let neighbours: BTreeSet<&str> = links.iter().map(other).collect();
    if neighbours.len() != 1 || neighbours.contains(name) {
        return None;
    }
    let links: Vec<_> = links.iter().map(|link| (link.from == name, kind(axes, link))).collect();
    let used = |flow: &'a DescribedFlow| {
        let ends = (flow.from == name, flow.to == name);
        (ends != (false, false)).then(|| (ends, flow.transport.as_str(), axis_of_flow(axes, flow), stem(&flow.id)))
    };
    let flows: Vec<_> = topology.flows.iter().filter_map(used).collect();
    Some((stem(name), neighbours, links, flows))
}

/// The properties in which equal links agree.
fn kind<'a>(axes: &'a [VariedAxis], link: &'a DescribedLink) -> impl PartialEq + use<'a> {
    let DescribedLink { id, rate, delay, queue, error, is_duplex, .. } = link;
    let axes = ["rate", "delay", "queue", "error"].map(|property| axis_of_link(axes, link, property));
    (stem(id), [rate, delay, queue], error, is_duplex, axes)
}

/// A name without its numbers: `S` of `S12`. Only names with the same stem can be shown as a range.
fn stem(name: &str) -> String {
    name.chars().filter(|sign| !sign.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(id: &str, from: &str, to: &str) -> DescribedLink {
        let text = str::to_owned;
        let (rate, delay, queue) = (text("1Gbit/s"), text("1ms"), text("unlimited"));
        DescribedLink { id: text(id), from: text(from), to: text(to), rate, delay, queue, error: None, is_duplex: true }
    }

    fn flow(id: &str, from: &str, to: &str) -> DescribedFlow {
        let text = str::to_owned;
        DescribedFlow { id: text(id), from: text(from), to: text(to), transport: text("ns2/fast") }
    }

    /// Senders, each with its own receiver, on both sides of one link.
    fn dumbbell(pairs: usize) -> DescribedNetwork {
        let pairs = || (0..pairs).map(|pair| (format!("S{pair}"), format!("D{pair}"), pair));
        let sources = pairs().map(|(source, _, pair)| link(&format!("a{pair}"), &source, "R1"));
        let sinks = pairs().map(|(_, sink, pair)| link(&format!("b{pair}"), "R2", &sink));
        let links: Vec<DescribedLink> = sources.chain([link("core", "R1", "R2")]).chain(sinks).collect();
        let mut nodes: Vec<String> = Vec::new();
        for name in links.iter().flat_map(|link| [&link.from, &link.to]) {
            if !nodes.contains(name) {
                nodes.push(name.clone());
            }
        }
        let flows = pairs().map(|(source, sink, pair)| flow(&format!("f{pair}"), &source, &sink));
        DescribedNetwork { nodes, links, flows: flows.collect() }
    }

    /// Asserts the names of the groups.
    #[track_caller]
    fn assert_groups(topology: &DescribedNetwork, axes: &[VariedAxis], nodes: &[&str], links: &[&str], flows: &[&str]) {
        let reduced = Alike::of(topology, axes).reduced();
        assert_eq!(reduced.nodes, nodes);
        assert_eq!(reduced.links.iter().map(|link| &link.id).collect::<Vec<_>>(), links);
        assert_eq!(reduced.flows.iter().map(|flow| &flow.id).collect::<Vec<_>>(), flows);
        for link in &reduced.links {
            assert!(reduced.nodes.contains(&link.from) && reduced.nodes.contains(&link.to), "{link:?}");
        }
        for flow in &reduced.flows {
            assert!(reduced.nodes.contains(&flow.from) && reduced.nodes.contains(&flow.to), "{flow:?}");
        }
    }

    #[test]
    fn ten_pairs_are_one_pair_ten_times() {
        let ten = dumbbell(10);
        let (nodes, links) = (["S0 … S9", "R1", "R2", "D0 … D9"], ["a0 … a9", "core", "b0 … b9"]);
        assert_groups(&ten, &[], &nodes, &links, &["f0 … f9"]);
        let sizes: Vec<usize> = Alike::of(&ten, &[]).nodes.iter().map(Vec::len).collect();
        assert_eq!(sizes, [10, 1, 1, 10]);
    }

    #[test]
    fn three_are_told_one_by_one() {
        let three = dumbbell(3);
        let nodes = ["S0", "R1", "S1", "S2", "R2", "D0", "D1", "D2"];
        assert_groups(&three, &[], &nodes, &["a0", "a1", "a2", "core", "b0", "b1", "b2"], &["f0", "f1", "f2"]);
    }

    #[test]
    fn a_link_that_differs_stays_apart() {
        let changes: [fn(&mut DescribedLink); 5] = [
            |link| link.rate = "2Gbit/s".to_owned(),
            |link| link.delay = "2ms".to_owned(),
            |link| link.queue = "drop_tail, packets 50".to_owned(),
            |link| link.error = Some("packets 1".to_owned()),
            |link| link.is_duplex = false,
        ];
        for change in changes {
            let mut five = dumbbell(5);
            change(&mut five.links[1]);
            let (nodes, links) = (["S0 … S4", "R1", "S1", "R2", "D0 … D4"], ["a0 … a4", "a1", "core", "b0 … b4"]);
            // Its flow has the destination of the others, but another source.
            assert_groups(&five, &[], &nodes, &links, &["f0 … f4", "f1"]);
        }
    }

    #[test]
    fn topologies_of_axis_values_stay_apart() {
        let axis = |key: &str| [VariedAxis { name: "x".to_owned(), values: vec![], keys: vec![key.to_owned()] }];
        let (nodes, links) = (["S0 … S4", "R1", "S1", "R2", "D0 … D4"], ["a0 … a4", "a1", "core", "b0 … b4"]);
        assert_groups(&dumbbell(5), &axis("link.a1.delay"), &nodes, &links, &["f0 … f4", "f1"]);
        let all = ["S0 … S4", "R1", "R2", "D0 … D4"];
        assert_groups(&dumbbell(5), &axis("link.a*.delay"), &all, &["a0 … a4", "core", "b0 … b4"], &["f0 … f4"]);
    }

    #[test]
    fn flows_of_another_kind_make_another_group() {
        let mut nine = dumbbell(9);
        for flow in &mut nine.flows[..4] {
            flow.transport = "ns2/sack".to_owned();
        }
        let nodes = ["S0 … S3", "R1", "S4 … S8", "R2", "D0 … D3", "D4 … D8"];
        let links = ["a0 … a3", "a4 … a8", "core", "b0 … b3", "b4 … b8"];
        assert_groups(&nine, &[], &nodes, &links, &["f0 … f3", "f4 … f8"]);
    }

    #[test]
    fn a_key_with_a_star_varies_whatever_it_names() {
        let axes = [VariedAxis { name: "x".to_owned(), values: vec![], keys: vec!["flow.f*.cc.rule".to_owned()] }];
        assert_eq!(axis_of(&axes, "flow.f12.cc"), Some("x"));
        assert_eq!(axis_of(&axes, "flow.late1.cc"), None);
        assert_eq!(axis_of(&axes, "flow.f12.cc.rule.depth"), None, "what is below the key is not told by it");
    }
}
