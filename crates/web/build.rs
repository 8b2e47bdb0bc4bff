//! Packs the scenarios of the repository, of `eval` and of the page's own scenes for the page.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The limit of the module's memory in bytes: a hostile scenario takes no more of a phone. The largest file of the repository takes a tenth of it.
const MEMORY_MAX: u32 = 1 << 30;

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "wasm32") {
        println!("cargo::rustc-link-arg-cdylib=--max-memory={MEMORY_MAX}");
        // Numbers in the code have no room to be changed by a linker: 7 % of the file, 2 % of the packed one.
        println!("cargo::rustc-link-arg-cdylib=--compress-relocations");
    }
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut texts = BTreeMap::new();
    let experiments = here.join("../../experiments");
    println!("cargo::rerun-if-changed={}", experiments.display());
    for folder in fs::read_dir(&experiments)?.collect::<Result<Vec<_>, _>>()? {
        // The page offers scenarios and what they extend.
        if folder.path().is_dir() && folder.file_name() != "generated" {
            add(&folder.path(), &format!("experiments/{}", folder.file_name().to_string_lossy()), &mut texts)?;
        }
    }
    let suite = here.join("../lab/src/evaluation/suite");
    println!("cargo::rerun-if-changed={}", suite.display());
    add(&suite, "eval", &mut texts)?;
    let scenes = here.join("scenes");
    println!("cargo::rerun-if-changed={}", scenes.display());
    add(&scenes, "scenes", &mut texts)?;
    let packed = File::create(PathBuf::from(std::env::var("OUT_DIR")?).join("scenarios.json.gz"))?;
    let mut packed = GzEncoder::new(packed, Compression::best());
    serde_json::to_writer(&mut packed, &texts)?;
    packed.finish()?;
    Ok(())
}

/// Adds the TOML files of a folder.
fn add(folder: &Path, name: &str, texts: &mut BTreeMap<String, String>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            texts.insert(format!("{name}/{file}"), fs::read_to_string(&path)?);
        }
    }
    Ok(())
}
