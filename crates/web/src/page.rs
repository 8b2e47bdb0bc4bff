//! The page: one HTML file that needs nothing else, neither a network nor a server.

use std::collections::BTreeMap;
use std::io::Write as _;

use anabranch_lab::html::{FONT, STYLE, THEME, UPLOT, UPLOT_STYLE};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

/// The compiled module, packed by LZMA.
pub const MODULE: &[u8] = include_bytes!("../object/anabranch.wasm.lzma");

/// The scenarios of the repository and of `eval`, JSON packed by gzip.
const SCENARIOS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/scenarios.json.gz"));

const FRAME: &str = include_str!("../page/index.html");
const OWN_STYLE: &str = include_str!("../page/playground.css");
const UNPACKER: &str = concat!(include_str!("../page/lzma.js"), include_str!("../page/unpack.js"));
const WORKER: &str = concat!(
    "\"use strict\";\n",
    include_str!("../page/law.js"),
    include_str!("../page/machine.js"),
    include_str!("../page/request.js"),
    include_str!("../page/worker.js")
);

/// The script's files, in an order in which each uses only what is before it.
const SCRIPTS: [&str; 13] = [
    THEME,
    include_str!("../page/model.js"),
    include_str!("../page/answer.js"),
    include_str!("../page/engine.js"),
    include_str!("../page/charts.js"),
    include_str!("../page/network.js"),
    include_str!("../page/handles.js"),
    include_str!("../page/export.js"),
    include_str!("../page/tours.js"),
    include_str!("../page/side.js"),
    include_str!("../page/own.js"),
    include_str!("../page/page.js"),
    "})();\n",
];

const ABOUT: &str = "Charts by uPlot 1.6.32 (Leon Sorokin, MIT licence); type is Inter 4.1 (The Inter Project Authors, SIL Open Font License 1.1).";

/// The whole page as HTML, about 1 MB, most of it the module.
pub fn page() -> String {
    page_of(SCENARIOS)
}

/// The page with further scenarios, by the names of their files: those of a report, and what they extend.
pub fn page_with(files: impl IntoIterator<Item = (String, String)>) -> String {
    const PACKED: &str = "it was packed by the build";
    let mut all: BTreeMap<String, String> = serde_json::from_reader(GzDecoder::new(SCENARIOS)).expect(PACKED);
    all.extend(files);
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&serde_json::to_vec(&all).expect("a map of texts is JSON")).expect("memory takes what is written");
    page_of(&packed.finish().expect("memory takes what is written"))
}

fn page_of(scenarios: &[u8]) -> String {
    let script = format!("{UPLOT}\n(() => {{\n\"use strict\";\n{}", SCRIPTS.concat());
    // Only this very script is run, whatever a scenario says; nothing is fetched.
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}' 'wasm-unsafe-eval'; worker-src blob:; style-src 'unsafe-inline'; font-src data:; \
         img-src data: blob:; base-uri 'none'; form-action 'none'",
        base64(&Sha256::digest(script.as_bytes()))
    );
    let style = format!("{FONT}{UPLOT_STYLE}{STYLE}{OWN_STYLE}");
    let parts = [
        ("policy", policy.as_str()),
        ("version", env!("CARGO_PKG_VERSION")),
        ("style", &style),
        ("about", ABOUT),
        ("unpacker", UNPACKER),
        ("worker", WORKER),
        ("module", &base64(MODULE)),
        ("scenarios", &base64(scenarios)),
        ("script", &script),
    ];
    // In one pass, so that no part is searched for the names of others.
    let mut page = String::new();
    for piece in FRAME.split("{{") {
        match piece.split_once("}}") {
            Some((name, rest)) => {
                let part = parts.iter().find(|(known, _)| *known == name);
                page.push_str(part.expect("the frame names parts that there are").1);
                page.push_str(rest);
            }
            None => page.push_str(piece),
        }
    }
    page
}

/// Base64 (RFC 4648).
fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let sign = SIGNS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { sign as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4648, section 10.
    #[test]
    fn base64_is_of_the_rfc() {
        let encoded = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(encoded, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }

    #[test]
    fn no_part_ends_the_element_that_it_is_in() {
        for text in [UPLOT, UNPACKER, WORKER].into_iter().chain(SCRIPTS) {
            assert!(!text.contains("</script"), "{}", &text[..60.min(text.len())]);
        }
        assert_eq!(page().matches("<script").count(), 5);
        assert!(!page().contains("{{"));
    }
}
