//! What the site needs of a page in Markdown: its anchors, its links, and the page with other links.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// A link or a picture of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// Where it leads, as the page says it.
    pub(super) to: String,
    /// The line of the page, from 1 on.
    pub(super) line: usize,
    /// The place of `to` in the text of the page.
    place: Range<usize>,
    pub(super) is_picture: bool,
}

fn parser(text: &str) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH).into_offset_iter()
}

/// The links of a page, in order, without those that have a scheme, such as `https:`.
pub(super) fn links(text: &str) -> Vec<Link> {
    let all = all_links(text);
    all.into_iter().filter(|link| !has_scheme(&link.to)).collect()
}

/// The links to other sites.
pub(super) fn external(text: &str) -> Vec<String> {
    let all = all_links(text).into_iter().map(|link| link.to);
    all.filter(|to| to.starts_with("https://") || to.starts_with("http://")).collect()
}

fn has_scheme(to: &str) -> bool {
    to.split_once(':').is_some_and(|(scheme, _)| scheme.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '+'))
}

fn all_links(text: &str) -> Vec<Link> {
    let mut found = vec![];
    for (event, range) in parser(text) {
        let (to, is_picture) = match event {
            Event::Start(Tag::Link { dest_url, .. }) => (dest_url, false),
            Event::Start(Tag::Image { dest_url, .. }) => (dest_url, true),
            _ => continue,
        };
        // The last, as the text of a link may repeat it.
        let Some(at) = text[range.clone()].rfind(&*to) else { continue };
        let begin = range.start + at;
        let line = text[..begin].matches('\n').count() + 1;
        found.push(Link { place: begin..begin + to.len(), line, to: to.into_string(), is_picture });
    }
    found
}

/// The page with other links: `change` says where one leads instead.
pub(super) fn relinked(text: &str, mut change: impl FnMut(&Link) -> Option<String>) -> String {
    let mut links = links(text);
    // A picture that is itself a link stands within it; both are changed from the end on.
    links.sort_by_key(|link| link.place.start);
    let mut whole = text.to_owned();
    for link in links.iter().rev() {
        if let Some(to) = change(link) {
            whole.replace_range(link.place.clone(), &to);
        }
    }
    whole
}

/// The anchors of a page: those of its headings, as mdBook and code hosts make them, and the ids of its HTML.
pub(super) fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = vec![];
    let mut heading: Option<String> = None;
    for (event, _) in parser(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = heading.as_mut() {
                    heading.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let anchor = anchor(&heading.take().unwrap_or_default());
                let before = found.iter().filter(|known| same(known, &anchor)).count();
                found.push(if before == 0 { anchor } else { format!("{anchor}-{before}") });
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                found.extend(html.split("id=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
            }
            _ => {}
        }
    }
    found
}

/// Whether an anchor is this one, or one that was numbered because it was there already.
fn same(known: &str, anchor: &str) -> bool {
    let rest = known.strip_prefix(anchor);
    rest.is_some_and(|rest| {
        rest.is_empty() || rest.strip_prefix('-').is_some_and(|n| n.parse::<u32>().is_ok_and(|n| n > 0))
    })
}

/// The anchor of a heading: small letters, digits, `-` and `_`; a space is `-`.
fn anchor(heading: &str) -> String {
    let sign = |sign: char| match sign {
        _ if sign.is_alphanumeric() || sign == '_' || sign == '-' => Some(sign),
        _ if sign.is_whitespace() => Some('-'),
        _ => None,
    };
    heading.to_lowercase().chars().filter_map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A *page*\n\n[one](a.md#b) and `[no](code.md)`, [![p](p.svg)](big.md)\n\n```text\n[no](fence.md)\n```\n\n## `cc`, Twice: it's\n## `cc`, Twice: it's\n\n\
                        | a |\n| --- |\n| [cell](c.md) |\n\n<a id=\"own\"></a> [far](https://example.org/x)\n";

    #[test]
    fn links_of_a_page_are_those_outside_of_code() {
        let found: Vec<(String, usize, bool)> =
            links(PAGE).into_iter().map(|link| (link.to, link.line, link.is_picture)).collect();
        let expected = [("a.md#b", 3, false), ("big.md", 3, false), ("p.svg", 3, true), ("c.md", 14, false)];
        assert_eq!(found, expected.map(|(to, line, is_picture)| (to.to_owned(), line, is_picture)));
        assert_eq!(external(PAGE), ["https://example.org/x"]);
    }

    #[test]
    fn anchors_are_numbered_where_headings_are_equal() {
        assert_eq!(anchors(PAGE), ["a-page", "cc-twice-its", "cc-twice-its-1", "own"]);
    }

    #[test]
    fn page_with_other_links_is_else_the_same() {
        let changed = relinked(PAGE, |link| (link.to != "c.md").then(|| format!("x/{}", link.to)));
        let expected =
            PAGE.replace("(a.md#b)", "(x/a.md#b)").replace("(p.svg)", "(x/p.svg)").replace("(big.md)", "(x/big.md)");
        assert_eq!(changed, expected);
    }
}
