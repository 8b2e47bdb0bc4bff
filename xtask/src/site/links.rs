//! The links of the built site: every file and every anchor that a page names is there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use super::{files, pages};

/// A page of the site.
#[derive(Debug, Default, PartialEq, Eq)]
struct Html {
    ids: BTreeSet<String>,
    /// What `href` and `src` say.
    links: Vec<String>,
}

/// What is wrong with the links of the site in `folder`. Pages that others make, and check, are looked for and not read.
pub(super) fn problems(folder: &Path, foreign: &[&str]) -> Result<Vec<String>, String> {
    let mut found = vec![];
    files::list(folder, ".", &mut found)?;
    let names = found.iter().map(|file: &String| file.trim_start_matches("./").to_owned());
    let is_own = |file: &String| file.ends_with(".html") && !foreign.iter().any(|made| file.starts_with(made));
    let mut read = BTreeMap::new();
    for name in names.filter(is_own) {
        let text = fs::read_to_string(folder.join(&name)).map_err(|error| format!("{name}: {error}"))?;
        read.insert(name, scan(&text));
    }
    let mut problems = vec![];
    for (name, page) in &read {
        let found: BTreeSet<String> = page.links.iter().filter_map(|to| wrong(folder, name, to, &read)).collect();
        problems.extend(found.into_iter().map(|what| format!("{name}: {what}")));
    }
    Ok(problems)
}

fn wrong(folder: &Path, page: &str, to: &str, read: &BTreeMap<String, Html>) -> Option<String> {
    if ["https:", "http:", "data:", "mailto:", "javascript:"].iter().any(|scheme| to.starts_with(scheme)) {
        return None;
    }
    let (file, anchor) = to.split_once('#').unwrap_or((to, ""));
    let Some(name) = (if file.is_empty() { Some(page.to_owned()) } else { pages::joined(page, file) }) else {
        return Some(format!("{to} leads out of the site"));
    };
    let Some(html) = read.get(&name) else {
        return (!folder.join(&name).is_file()).then(|| format!("{to} leads nowhere"));
    };
    (!anchor.is_empty() && !html.ids.contains(anchor)).then(|| format!("{to}: there is no such anchor"))
}

/// The ids and links of a page. Scripts, styles and comments have none.
fn scan(text: &str) -> Html {
    let mut html = Html::default();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let name: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
        rest = attributes(&rest[name.len()..], &mut html);
        if name == "script" || name == "style" {
            rest = rest.split_once(&format!("</{name}")).map_or("", |(_, after)| after);
        }
    }
    html
}

/// Reads the attributes of an element; returns what follows its `>`.
fn attributes<'a>(mut rest: &'a str, html: &mut Html) -> &'a str {
    loop {
        rest = rest.trim_start_matches(|sign: char| sign.is_whitespace() || sign == '/');
        let Some(end) = rest.find(|sign: char| sign.is_whitespace() || "=>/".contains(sign)) else { return "" };
        let name = &rest[..end];
        rest = rest[end..].trim_start();
        if let Some(after) = rest.strip_prefix('=') {
            let after = after.trim_start();
            let quote = after.chars().next().filter(|sign| "\"'".contains(*sign));
            let (value, after) = match quote {
                Some(quote) => after[1..].split_once(quote).unwrap_or((&after[1..], "")),
                None => {
                    after.split_at(after.find(|sign: char| sign.is_whitespace() || sign == '>').unwrap_or(after.len()))
                }
            };
            let value = value.replace("&amp;", "&");
            match name {
                "id" => _ = html.ids.insert(value),
                "href" | "src" => html.links.push(value),
                _ => {}
            }
            rest = after;
        } else if let Some(after) = rest.strip_prefix('>') {
            return after;
        } else if rest.is_empty() {
            return "";
        }
    }
}

/// The links to other sites that do not answer. It needs curl.
pub(super) fn external(links: &BTreeSet<String>) -> Result<Vec<String>, String> {
    let mut problems = vec![];
    for link in links {
        let asked = Command::new("curl")
            .args([
                "--silent",
                "--location",
                "--output",
                "/dev/null",
                "--max-time",
                "30",
                "--write-out",
                "%{http_code}",
            ])
            .arg(link)
            .output()
            .map_err(|error| format!("cannot start curl: {error}"))?;
        let code = String::from_utf8_lossy(&asked.stdout).into_owned();
        if !asked.status.success() || !code.starts_with('2') {
            problems.push(format!("{link} answers {code}"));
        }
    }
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_links_are_those_of_elements() {
        let text = "<!doctype html><!-- <a href=\"no\"> --><h1 id=\"a\">x</h1><a class=x href='b.html?x&amp;y'>b</a>\n\
                    <script src=\"s.js\">if (a<b) '<a href=\"no\">'</script><img\n src=i.png /><br/><a href=\"#a\" id=b>1 < 2</a><p hidden>";
        let html = scan(text);
        assert_eq!(html.ids.iter().map(String::as_str).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(html.links, ["b.html?x&y", "s.js", "i.png", "#a"]);
    }

    #[test]
    fn link_of_the_site_that_leads_nowhere_is_named() {
        let folder = crate::run::root().join("target/site-links-of-a-test");
        _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("part")).expect("a temporary folder can be made");
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("it can be written");
        write("a.html", "<a href=\"part/b.html#x\"></a><a href=\"part/b.html#y\"></a><a href=\"api/none.html\"></a>");
        write(
            "part/b.html",
            "<p id=\"x\"><a href=\"../a.html\"></a><a href=\"../../c\"></a><img src=\"i.png\"><a href=\"https://example.org\">",
        );
        write("made.html", "<a href=\"none.html\">");
        let found = problems(&folder, &["made.html"]);
        fs::remove_dir_all(&folder).expect("it can be removed");
        let expected = [
            "a.html: api/none.html leads nowhere",
            "a.html: part/b.html#y: there is no such anchor",
            "part/b.html: ../../c leads out of the site",
            "part/b.html: i.png leads nowhere",
        ];
        assert_eq!(found, Ok(expected.map(str::to_owned).to_vec()));
    }
}
