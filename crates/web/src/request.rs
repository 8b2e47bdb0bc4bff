//! What the page asks for.
//!
//! A request is a list of texts in turns, keys and values, each in UTF-8 after its length in bytes (32 bits, little-endian). `page/request.js` writes it.
//! It is no JSON, since the code that reads it is a part of the module that each page carries.

use std::collections::BTreeMap;
use std::str::FromStr;

#[derive(Debug)]
pub(crate) enum Request {
    /// The laws and queues that there are.
    About,
    /// A law that is a module of its own.
    Law {
        /// The name of its file.
        name: String,
    },
    /// The axes of a file.
    Open { file: File },
    /// A run.
    Run(Box<Run>),
}

/// A run of a file.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) file: File,
    /// Whether the axes of the file are told first, so that it need not be opened before.
    pub(crate) opens: bool,
    /// The labels of the variant, axis by axis; the first value of each axis if empty.
    pub(crate) variant: Vec<String>,
    /// Another seed than the file's.
    pub(crate) seed: Option<u64>,
    /// The part of the run whose packets are wanted, in seconds.
    pub(crate) packets: Option<(f64, f64)>,
    /// The part of the run that is drawn in more detail, in seconds.
    pub(crate) view: Option<(f64, f64)>,
}

/// A scenario or an experiment.
#[derive(Debug, Default)]
pub(crate) struct File {
    /// What messages call it.
    pub(crate) name: String,
    pub(crate) text: String,
    /// The files that it may extend, by their names.
    pub(crate) bases: BTreeMap<String, String>,
    /// `key=value`, as after `--set`.
    pub(crate) set: Vec<String>,
    /// The laws that it may name and the registry has not, by the names of their modules.
    pub(crate) laws: Vec<String>,
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let (mut ask, mut run) = ("", Run::default());
        let mut rest = bytes;
        while !rest.is_empty() {
            let key = text(&mut rest)?;
            let value = text(&mut rest)?;
            let Run { file, opens, variant, seed, packets, view } = &mut run;
            match key {
                "ask" => ask = value,
                "name" => file.name = value.to_owned(),
                "text" => file.text = value.to_owned(),
                "set" => file.set.push(value.to_owned()),
                "law" => file.laws.push(value.to_owned()),
                "opens" => *opens = value == "true",
                "variant" => variant.push(value.to_owned()),
                "seed" => *seed = Some(number(key, value)?),
                "packets" => *packets = Some(span(key, value)?),
                "view" => *view = Some(span(key, value)?),
                _ => match key.strip_prefix("base ") {
                    Some(base) => drop(file.bases.insert(base.to_owned(), value.to_owned())),
                    None => return Err(format!("unknown key {key}")),
                },
            }
        }
        match ask {
            "about" => Ok(Self::About),
            "law" => Ok(Self::Law { name: run.file.name }),
            "open" => Ok(Self::Open { file: run.file }),
            "run" => Ok(Self::Run(Box::new(run))),
            _ => Err(format!("nothing is known that is called {ask:?}")),
        }
    }
}

/// The next text.
fn text<'a>(rest: &mut &'a [u8]) -> Result<&'a str, String> {
    let next =
        rest.split_first_chunk().and_then(|(len, after)| after.split_at_checked(u32::from_le_bytes(*len) as usize));
    let (text, after) = next.ok_or("it ends too early")?;
    *rest = after;
    std::str::from_utf8(text).map_err(|error| error.to_string())
}

fn number<T: FromStr>(key: &str, value: &str) -> Result<T, String> {
    value.trim().parse().map_err(|_| format!("{value} is no number for {key}"))
}

/// Two numbers with a comma between them.
fn span(key: &str, value: &str) -> Result<(f64, f64), String> {
    let (from, to) = value.split_once(',').ok_or_else(|| format!("{key} has two numbers, not {value}"))?;
    Ok((number(key, from)?, number(key, to)?))
}
