//! Project templates for a controller: what `anabranch cc new` writes.

/// The language of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// A Rust library for `wasm32-unknown-unknown`.
    Rust,
    /// A C file for clang.
    C,
    /// A Python class, which needs no WASM module.
    Python,
}

/// A file of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name within the project's folder, with `/` between folders.
    pub name: String,
    /// The text of the file.
    pub text: String,
}

/// A project: its files, and the commands to run in its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// The files that are written, in the order in which they are shown.
    pub files: Vec<File>,
    /// The commands, in order.
    pub commands: Vec<String>,
    /// The file of the WASM module that the commands build; `None` for Python.
    pub module: Option<String>,
}

/// A project of this name.
///
/// If the name is no valid name of a file and of a package: lower-case letters, digits and `_`, with a letter first, at most 40 characters.
pub fn project(name: &str, language: Language) -> Result<Project, String> {
    let is_sign = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_sign);
    if !is_name || name.len() > NAME_MAX || TAKEN.contains(&name) {
        return Err(format!(
            "a controller cannot be called `{name}`; use small letters, digits and `_`, a letter first, at most {NAME_MAX}, and no word of Rust"
        ));
    }
    let module = match language {
        Language::Rust => Some(format!("target/wasm32-unknown-unknown/release/{name}.wasm")),
        Language::C => Some(format!("{name}.wasm")),
        Language::Python => None,
    };
    let law = module.as_ref().map_or_else(String::new, |module| format!("cc = {{ plugin = \"{module}\" }}\n"));
    let scenario = include_str!("../template/scenario.toml").replace("@CC@\n", &format!("{law}\n"));
    let mut files = match language {
        Language::Rust => vec![
            ("Cargo.toml".to_owned(), include_str!("../template/rust/Cargo.toml.in")),
            (".cargo/config.toml".to_owned(), include_str!("../template/rust/config.toml")),
            ("src/lib.rs".to_owned(), include_str!("../template/rust/lib.rs")),
            ("src/anabranch_cc.rs".to_owned(), include_str!("../template/rust/anabranch_cc.rs")),
        ],
        Language::C => vec![
            ("Makefile".to_owned(), include_str!("../template/c/Makefile")),
            (format!("{name}.c"), include_str!("../template/c/law.c")),
            ("anabranch_cc.h".to_owned(), HEADER),
        ],
        Language::Python => vec![(format!("{name}.py"), include_str!("../template/python/law.py"))],
    };
    files.push(("scenario.toml".to_owned(), &scenario));
    let files = files.into_iter().map(|(file, text)| File { name: file, text: text.replace("@NAME@", name) }).collect();
    let mut commands: Vec<String> = match language {
        Language::Rust => {
            vec!["rustup target add wasm32-unknown-unknown".to_owned(), "cargo build --release".to_owned()]
        }
        Language::C => vec!["make".to_owned()],
        Language::Python => vec![format!("python3 {name}.py")],
    };
    if let Some(module) = &module {
        commands.push(format!("anabranch cc check {module}"));
        commands.push("anabranch sim run scenario.toml".to_owned());
    }
    Ok(Project { files, commands, module })
}

/// The interface for C.
pub const HEADER: &str = include_str!("../template/c/anabranch_cc.h");

const NAME_MAX: usize = 40;

/// Names that a Rust package, or a Python file beside `anabranch`, cannot have.
const TAKEN: [&str; 44] = [
    "anabranch",
    "as",
    "async",
    "await",
    "break",
    "const",
    "continue",
    "crate",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "match",
    "mod",
    "move",
    "mut",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "unsafe",
    "use",
    "where",
    "while",
    "yield",
    "core",
    "std",
];
