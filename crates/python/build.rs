//! macOS wants to be told that the interpreter brings the symbols.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
