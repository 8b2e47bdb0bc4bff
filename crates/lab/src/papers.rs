//! The papers that experiments are from, and the derivations: what docs/bibliography.md calls them.

/// Keys and titles.
const PAPERS: [(&str, &str); 6] = [
    (
        "mfast-2019",
        "Enhancing Fast TCP's Performance Using Single TCP Connection for Parallel Traffic Flows to Prevent Head-of-Line \
         Blocking",
    ),
    ("emfast-2019", "Enhanced Multistream Fast TCP: Rapid Bandwidth Utilization after Fast-Recovery Phase"),
    (
        "multihoming-2010",
        "A Simulation-Based Study of FAST TCP Compared to SCTP: Towards Multihoming Implementation Using FAST TCP",
    ),
    ("ctcp-2019", "Composite TCP: Refining Congestion Control"),
    ("rrfast-2017", "Enhanced FAST TCP by Solving Rerouting Problem"),
    ("analytic", "What follows from the laws"),
];

/// The title of a paper; its key if it is none of them.
pub(crate) fn title(key: &str) -> &str {
    PAPERS.iter().find(|(known, _)| *known == key).map_or(key, |(_, title)| title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_those_of_the_bibliography() {
        let page = include_str!("../../../docs/bibliography.md");
        let entries = page.split("\n\n").map(|entry| entry.split_whitespace().collect::<Vec<_>>().join(" "));
        let entries: Vec<String> = entries.collect();
        for (key, title) in PAPERS {
            let entry = entries.iter().find(|entry| entry.starts_with(&format!("**{key}**"))).expect(key);
            assert!(entry.contains(&format!("*{title}.*")), "{key}: expected *{title}.*, got {entry}");
        }
    }
}
