//! Links to a scene of the playground: `lab/playground.html#tour=TOUR.STEP`, both from 0 on, or `#file=FILE`.

use std::path::Path;

use super::files::read;

/// Where the playground's tours are.
const TOURS: &str = "crates/web/page/tours.js";

/// What is wrong with the address of a scene; each of `parameters` is `key=value`.
pub(super) fn problem(root: &Path, parameters: &str) -> Option<String> {
    let known = |(key, value): (&str, &str)| match key {
        "tour" => tour(root, value),
        "file" if root.join(value).is_file() || value.starts_with("scenes/") => None,
        "file" => Some(format!("there is no {value}")),
        _ => Some(format!("{key}={value} is no scene that this check knows")),
    };
    let mut pairs = parameters.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.find_map(known)
}

/// A tour and a step that there are.
fn tour(root: &Path, value: &str) -> Option<String> {
    let tours = match read(root, TOURS) {
        Ok(text) => steps(&text),
        Err(error) => return Some(error),
    };
    let number = |text: &str| text.parse::<usize>().ok();
    let scene = value.split_once('.').and_then(|(tour, step)| number(tour).zip(number(step)));
    let there = scene.is_some_and(|(tour, step)| tours.get(tour).is_some_and(|(_, steps)| step < *steps));
    (!there).then(|| format!("{TOURS} has no tour {value}"))
}

/// The paper of each tour, and the number of its steps.
pub(super) fn steps(text: &str) -> Vec<(String, usize)> {
    let tours = text.split("key: \"").skip(1);
    tours.filter_map(|tour| Some((tour.split_once('"')?.0.to_owned(), tour.matches("\n      step(").count()))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::markdown;
    use super::*;
    use crate::run;

    /// The page of a paper opens that paper's tour.
    #[test]
    fn page_of_a_paper_opens_its_own_tour() {
        let root = run::root();
        let text = |path: &str| read(&root, path).unwrap_or_else(|error| panic!("{error}"));
        let tours = steps(&text(TOURS));
        for (page, paper) in [
            ("mfast", "mfast-2019"),
            ("emfast", "emfast-2019"),
            ("multihoming", "multihoming-2010"),
            ("composite", "ctcp-2019"),
            ("rrfast", "rrfast-2017"),
        ] {
            let page = text(&format!("docs/explanation/{page}.md"));
            let number = tours.iter().position(|(key, _)| key == paper).expect("each paper has a tour");
            let scenes: Vec<String> = markdown::links(&page)
                .into_iter()
                .filter_map(|link| Some(link.to.split_once("playground.html#")?.1.to_owned()))
                .collect();
            assert!(!scenes.is_empty(), "{paper}");
            for scene in scenes {
                assert!(scene.starts_with(&format!("tour={number}.")), "{paper}: {scene}");
            }
        }
    }

    #[test]
    fn scene_that_is_not_there_is_a_problem() {
        let root = run::root();
        assert_eq!(problem(&root, "tour=0.1"), None);
        assert_eq!(problem(&root, "file=experiments/mfast-2019/fig6.toml"), None);
        for scene in ["tour=9.0", "tour=0.99", "tour=x", "file=none.toml", "wrong=1"] {
            assert!(problem(&root, scene).is_some(), "{scene}");
        }
    }
}
