//! `[topology]`: links of a network of a known shape. `kind = "dumbbell"` with ten `pairs` is twenty-one links.
//!
//! The links are written out when the file is read, as elements with a `count` are. Overrides, checks and messages see the written-out links.

use super::{Key, Node, VALUES_MAX, Value, values};
use crate::diagnostic::{Fault, Place, suggestion};

/// The table.
const TOPOLOGY: &str = "topology";

/// The limit of hosts, hops or pairs in a shape.
pub(crate) const SIZE_MAX: i64 = 4096;

/// The largest fat tree: 4394 hosts and 26,364 directions of links.
pub(crate) const PORTS_MAX: i64 = 26;

type Made<T> = Result<T, Fault>;

/// Writes the topology out, if there is one. `left` is the number of values that may still be made.
pub(super) fn write_out(root: &mut Node, left: &mut usize) -> Result<(), Fault> {
    let Value::Table(entries) = &mut root.value else { return Ok(()) };
    let Some(position) = entries.iter().position(|(key, _)| key.name == TOPOLOGY) else { return Ok(()) };
    let (_, topology) = entries.remove(position);
    let place = topology.place.clone();
    let made = Shape::read(topology).and_then(Shape::parts);
    let Parts { links, flows, is_multipath } = made?;
    *left = left.checked_sub(links.iter().chain(&flows).map(values).sum()).ok_or_else(|| {
        let fault = Fault::new(format!("written out, the topology has more than {VALUES_MAX} values"));
        fault.remedy("make it smaller, or its lists shorter").at(&place)
    })?;
    for (name, nodes) in [("link", links), ("flow", flows)] {
        let Some(place) = nodes.first().map(|node| node.place.clone()) else { continue };
        match entries.iter_mut().find(|(key, _)| key.name == name) {
            Some((_, Node { value: Value::Array(list), .. })) => list.extend(nodes),
            // A value that is no list is refused when it is decoded.
            Some(_) => {}
            None => entries.push(entry(name, Node { place, value: Value::Array(nodes) })),
        }
    }
    if is_multipath && !entries.iter().any(|(key, _)| key.name == "multipath") {
        entries.push(entry("multipath", Node { place: root.place.clone(), value: Value::Boolean(true) }));
    }
    Ok(())
}

/// The written-out elements.
#[derive(Default)]
struct Parts {
    links: Vec<Node>,
    flows: Vec<Node>,
    is_multipath: bool,
}

/// The table, while it is read.
struct Shape {
    place: Place,
    kind: String,
    entries: Vec<(Key, Node)>,
}

impl Shape {
    fn read(topology: Node) -> Made<Self> {
        let place = topology.place;
        let Value::Table(mut entries) = topology.value else {
            let fault = Fault::new("a topology is a table").remedy("write [topology] and its keys below it");
            return Err(fault.at(&place));
        };
        let position = entries.iter().position(|(key, _)| key.name == "kind");
        let kind = position.map(|position| entries.remove(position).1);
        let known = KINDS.join(", ");
        match kind {
            Some(Node { value: Value::String(kind), .. }) if KINDS.contains(&kind.as_str()) => {
                Ok(Self { place, kind, entries })
            }
            Some(Node { place, value: Value::String(kind) }) => {
                let fault = Fault::new(format!("there is no topology `{kind}`"));
                Err(fault.remedy(suggestion(&kind, KINDS.iter().copied())).at(&place))
            }
            _ => Err(Fault::new("a topology needs a kind").remedy(format!("one of {known}")).at(&place)),
        }
    }

    fn parts(mut self) -> Made<Parts> {
        let parts = match self.kind.as_str() {
            "dumbbell" => self.dumbbell()?,
            "parking_lot" => self.parking_lot()?,
            "two_paths" => self.two_paths()?,
            _ => self.fat_tree()?,
        };
        if let Some((key, _)) = self.entries.first() {
            let fault = Fault::new(format!("unknown key `{}` of a topology of the kind `{}`", key.name, self.kind));
            return Err(fault.remedy("the keys of each kind are in docs/reference/scenario.md").at(&key.place));
        }
        Ok(parts)
    }

    /// Sources s0, s1, ... at `left`, destinations d0, d1, ... at `right`, and the bottleneck between.
    fn dumbbell(&mut self) -> Made<Parts> {
        let pairs = self.size("pairs", 1, SIZE_MAX)?;
        let (bottleneck, access) = (self.template("bottleneck")?, self.template("access")?);
        let mut links = vec![bottleneck.link("bottleneck", "left", "right")];
        for pair in 0..pairs {
            links.push(access.link(&format!("access{pair}"), &format!("s{pair}"), "left"));
            links.push(access.link(&format!("exit{pair}"), "right", &format!("d{pair}")));
        }
        Ok(Parts { links, ..Parts::default() })
    }

    /// Routers r0 to rn in a row with a link `hop<i>` from each to the next. A long flow goes from `s` to `d` at both ends, and
    /// one over each hop from `a<i>` to `b<i>`.
    fn parking_lot(&mut self) -> Made<Parts> {
        let hops = self.size("hops", 1, SIZE_MAX)?;
        let (hop, access) = (self.template("hop")?, self.template("access")?);
        let mut links = vec![access.link("access", "s", "r0"), access.link("exit", &format!("r{hops}"), "d")];
        for index in 0..hops {
            let (here, there) = (format!("r{index}"), format!("r{}", index + 1));
            links.push(hop.link(&format!("hop{index}"), &here, &there));
            links.push(access.link(&format!("access{index}"), &format!("a{index}"), &here));
            links.push(access.link(&format!("exit{index}"), &there, &format!("b{index}")));
        }
        Ok(Parts { links, ..Parts::default() })
    }

    /// Two paths, from `s` over `a` to `d` and over `b` to `d`. A flow with `paths` from `first<i>` to `last<i>` uses both.
    fn two_paths(&mut self) -> Made<Parts> {
        let access = self.template("access")?;
        let mut links = vec![];
        for (number, key) in ["first", "second"].into_iter().enumerate() {
            let middle = ["a", "b"][number];
            links.push(access.link(&format!("first{number}"), "s", middle));
            links.push(self.template(key)?.link(&format!("last{number}"), middle, "d"));
        }
        Ok(Parts { links, ..Parts::default() })
    }

    /// A fat tree of switches with k ports (Al-Fares et al., SIGCOMM 2008): k pods of k/2 edge and k/2 aggregation switches, (k/2)² cores,
    /// k/2 hosts at each edge. The aggregation switch j of each pod is linked to the cores j k/2 to (j + 1) k/2 - 1.
    fn fat_tree(&mut self) -> Made<Parts> {
        let ports = self.size("k", 2, PORTS_MAX)?;
        if ports % 2 == 1 {
            let fault = Fault::new(format!("half of {ports} ports go up, and half down"));
            return Err(fault.remedy("use an even `k`").at(&self.place));
        }
        let half = ports / 2;
        let link = self.template("link")?;
        let mut links = vec![];
        for (pod, edge) in (0..ports).flat_map(|pod| (0..half).map(move |edge| (pod, edge))) {
            let switch = format!("e{pod}-{edge}");
            for port in 0..half {
                let host = (pod * half + edge) * half + port;
                links.push(link.link(&format!("host{host}"), &format!("h{host}"), &switch));
                links.push(link.link(&format!("edge{pod}-{edge}-{port}"), &switch, &format!("a{pod}-{port}")));
                // The aggregation switches are as many as the edge switches.
                let core = format!("c{}", edge * half + port);
                links.push(link.link(&format!("core{pod}-{edge}-{port}"), &format!("a{pod}-{edge}"), &core));
            }
        }
        let hosts = ports * half * half;
        let mut flows = vec![];
        if self.entries.iter().any(|(key, _)| key.name == "stride") {
            let stride = self.size("stride", 1, hosts - 1)?;
            let flow = self.template("flow")?;
            for host in 0..hosts {
                let (from, to) = (format!("h{host}"), format!("h{}", (host + stride) % hosts));
                flows.push(flow.link(&format!("f{host}"), &from, &to));
            }
        }
        Ok(Parts { links, flows, is_multipath: true })
    }

    fn size(&mut self, name: &str, least: i64, most: i64) -> Made<i64> {
        match self.take(name) {
            Some(Node { value: Value::Integer(number), .. }) if (least..=most).contains(&number) => Ok(number),
            Some(Node { place, .. }) => {
                let fault = Fault::new(format!("`{name}` is no number that this topology can have"));
                Err(fault.remedy(format!("use a whole number from {least} to {most}")).at(&place))
            }
            None => Err(self.missing(name, &format!("{name} = {}", least.max(4).min(most)))),
        }
    }

    fn template(&mut self, name: &str) -> Made<Template> {
        match self.take(name) {
            Some(Node { place, value: Value::Table(entries) }) => {
                let own = ["id", "from", "to", "count"];
                if let Some((key, _)) = entries.iter().find(|(key, _)| own.contains(&key.name.as_str())) {
                    let fault = Fault::new(format!("the topology says `{}` itself", key.name));
                    return Err(fault.remedy("remove it").at(&key.place));
                }
                Ok(Template { place, entries })
            }
            Some(Node { place, .. }) => {
                let fault = Fault::new(format!("`{name}` is a table"));
                Err(fault.remedy("write such as { rate = \"10Mbit/s\", delay = \"10ms\" }").at(&place))
            }
            None => Err(self.missing(name, &format!("{name} = {{ rate = \"10Mbit/s\", delay = \"10ms\" }}"))),
        }
    }

    fn take(&mut self, name: &str) -> Option<Node> {
        let position = self.entries.iter().position(|(key, _)| key.name == name)?;
        Some(self.entries.remove(position).1)
    }

    fn missing(&self, name: &str, remedy: &str) -> Fault {
        let fault = Fault::new(format!("a topology of the kind `{}` needs `{name}`", self.kind));
        fault.remedy(format!("write {remedy}")).at(&self.place)
    }
}

const KINDS: [&str; 4] = ["dumbbell", "parking_lot", "two_paths", "fat_tree"];

/// The common keys of all links of one kind, or of all flows.
struct Template {
    place: Place,
    entries: Vec<(Key, Node)>,
}

impl Template {
    /// A link `id` from one node to another with these keys.
    fn link(&self, id: &str, from: &str, to: &str) -> Node {
        let names = [("id", id), ("from", from), ("to", to)]
            .map(|(key, name)| entry(key, Node { place: self.place.clone(), value: Value::String(name.to_owned()) }));
        let entries = names.into_iter().chain(self.entries.iter().cloned()).collect();
        Node { place: self.place.clone(), value: Value::Table(entries) }
    }
}

fn entry(name: &str, node: Node) -> (Key, Node) {
    (Key { place: node.place.clone(), name: name.to_owned() }, node)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::Document;
    use crate::scenario::Scenario;

    fn parse(topology: &str, flow: &str) -> Result<Scenario, String> {
        let text = format!("duration = \"1s\"\n{topology}\n{flow}");
        let document = Document::parse("net.toml", &text).map_err(|error| error.to_string())?;
        Scenario::parse(&document).map_err(|error| error.to_string())
    }

    const ACCESS: &str = "access = { rate = \"1Gbit/s\", delay = \"1ms\" }";

    fn flow(from: &str, to: &str) -> String {
        format!("[[flow]]\nid = \"f\"\nfrom = \"{from}\"\nto = \"{to}\"\ntransport = \"anabranch\"")
    }

    #[test]
    fn a_dumbbell_has_a_bottleneck_and_two_links_a_pair() {
        let text = format!(
            "[topology]\nkind = \"dumbbell\"\npairs = 10\n{ACCESS}\nbottleneck = {{ rate = \"10Mbit/s\", delay = \"20ms\" }}"
        );
        let scenario = parse(&text, &flow("s9", "d0")).unwrap();
        assert_eq!((scenario.links.len(), scenario.nodes.len()), (2 * 21, 22));
        assert!(!scenario.is_multipath);
    }

    #[test]
    fn a_parking_lot_has_a_link_a_hop() {
        let text = format!(
            "[topology]\nkind = \"parking_lot\"\nhops = 3\n{ACCESS}\nhop = {{ rate = \"10Mbit/s\", delay = \"20ms\" }}"
        );
        for (from, to) in [("s", "d"), ("a0", "b0"), ("a2", "b2")] {
            let scenario = parse(&text, &flow(from, to)).unwrap();
            assert_eq!((scenario.links.len(), scenario.nodes.len()), (2 * (2 + 9), 12));
        }
    }

    #[test]
    fn two_paths_are_two() {
        let path = "{ rate = \"10Mbit/s\", delay = \"20ms\" }";
        let text = format!("[topology]\nkind = \"two_paths\"\n{ACCESS}\nfirst = {path}\nsecond = {path}");
        let paths = "paths = [{ first = \"first0\", last = \"last0\" }, { first = \"first1\", last = \"last1\" }]";
        let scenario = parse(&text, &format!("{}\n{paths}", flow("s", "d"))).unwrap();
        assert_eq!((scenario.links.len(), scenario.flows[0].paths.len()), (8, 2));
    }

    /// k = 4: 16 hosts, 20 switches with 4 links each, and 48 links.
    #[test]
    fn a_fat_tree_uses_all_ports() {
        let link = "link = { rate = \"1Gbit/s\", delay = \"10us\" }";
        let text = format!(
            "[topology]\nkind = \"fat_tree\"\nk = 4\n{link}\nstride = 8\nflow = {{ transport = \"anabranch\" }}"
        );
        let scenario = parse(&text, "").unwrap();
        assert_eq!((scenario.links.len(), scenario.nodes.len(), scenario.flows.len()), (96, 36, 16));
        assert!(scenario.is_multipath);
        let mut ports = BTreeMap::new();
        for link in &scenario.links {
            *ports.entry(scenario.nodes[link.from].as_str()).or_insert(0) += 1;
        }
        assert!(ports.iter().all(|(node, &count)| count == if node.starts_with('h') { 1 } else { 4 }), "{ports:?}");
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let refused = |text: &str| parse(text, "").unwrap_err();
        assert!(refused("[topology]\nkind = \"dumbell\"").contains("`dumbbell`"));
        let missing = refused("[topology]\nkind = \"dumbbell\"\npairs = 2");
        assert!(missing.contains("net.toml:2") && missing.contains("needs `bottleneck`"), "{missing}");
        let odd = refused("[topology]\nkind = \"fat_tree\"\nk = 5");
        assert!(odd.contains("even `k`"), "{odd}");
        let text = format!("[topology]\nkind = \"parking_lot\"\nhops = 2\n{ACCESS}\nhop = {{ rate = \"fast\" }}");
        let wrong = refused(&text);
        assert!(wrong.contains("net.toml:6"), "{wrong}");
    }
}
