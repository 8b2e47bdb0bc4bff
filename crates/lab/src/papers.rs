//! The papers of the experiments, and the groups without a paper: their keys in docs/bibliography.md, and their questions.

struct Known {
    key: &'static str,
    title: &'static str,
    question: &'static str,
}

const PAPERS: [Known; 10] = [
    Known {
        key: "mfast-2019",
        title: "Enhancing Fast TCP's Performance Using Single TCP Connection for Parallel Traffic Flows to Prevent \
                Head-of-Line Blocking",
        question: "Can the streams of one FAST TCP connection go on while one of them waits for a lost packet?",
    },
    Known {
        key: "emfast-2019",
        title: "Enhanced Multistream Fast TCP: Rapid Bandwidth Utilization after Fast-Recovery Phase",
        question: "How soon after fast recovery can FAST TCP fill its path again?",
    },
    Known {
        key: "multihoming-2010",
        title: "A Simulation-Based Study of FAST TCP Compared to SCTP: Towards Multihoming Implementation Using FAST TCP",
        question: "Is FAST TCP a better ground for several paths at once than SCTP?",
    },
    Known {
        key: "ctcp-2019",
        title: "Composite TCP: Refining Congestion Control",
        question: "Can a sender tell random loss from congestion, and what is that worth to it?",
    },
    Known {
        key: "rrfast-2017",
        title: "Enhanced FAST TCP by Solving Rerouting Problem",
        question: "How does FAST TCP find its base RTT again when its route grows longer?",
    },
    Known {
        key: "analytic",
        title: "What follows from the laws",
        question: "Does the simulator do what the laws say on paper?",
    },
    Known {
        key: "beyond",
        title: "What the papers did not ask",
        question: "What do the mechanisms do where their papers did not look, and what do the bounds of our own law cost and win?",
    },
    Known {
        key: "rivals",
        title: "Laws of others",
        question: "Do the laws of others do here what their papers and RFCs say?",
    },
    Known {
        key: "reality",
        title: "The same over real links",
        question: "Does the transport do over real links what it does in the simulator?",
    },
    Known {
        key: "law",
        title: "What the default law is to do",
        question: "Can the default law be left on: beside others, with losses, on routes that change, at any rate?",
    },
];

fn find(key: &str) -> Option<&'static Known> {
    PAPERS.iter().find(|paper| paper.key == key)
}

/// Whether it is a paper, not a group of derivations or of our own questions.
pub(crate) fn is_paper(key: &str) -> bool {
    !OURS.contains(&key)
}

const OURS: [&str; 5] = ["analytic", "beyond", "rivals", "reality", "law"];

/// The rank for sorting: papers in the order above, unknown papers, our own groups.
pub(crate) fn rank(key: &str) -> (bool, usize) {
    (!is_paper(key), PAPERS.iter().position(|paper| paper.key == key).unwrap_or(PAPERS.len()))
}

/// The title of a paper; its key if it is not in the list.
pub(crate) fn title(key: &str) -> &str {
    find(key).map_or(key, |paper| paper.title)
}

/// The question of a paper; empty if it is not in the list.
pub(crate) fn question(key: &str) -> &'static str {
    find(key).map_or("", |paper| paper.question)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_those_of_the_bibliography() {
        let page = include_str!("../../../docs/bibliography.md");
        let entries = page.split("\n\n").map(|entry| entry.split_whitespace().collect::<Vec<_>>().join(" "));
        let entries: Vec<String> = entries.collect();
        for Known { key, title, .. } in PAPERS {
            let entry = entries.iter().find(|entry| entry.starts_with(&format!("**{key}**"))).expect(key);
            assert!(entry.contains(&format!("*{title}.*")), "{key}: expected *{title}.*, got {entry}");
        }
    }
}
