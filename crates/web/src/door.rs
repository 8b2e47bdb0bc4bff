//! The exports of the WASM module, and what it imports of the page.
//!
//! The page calls `reserve(len)`, writes a request of that length there, and calls `answer()`, which calls the page's `emit` with each answer: a JSON text, and
//! numbers. `machine` has the imports by which the browser runs laws that are modules.

use std::sync::{Mutex, PoisonError};

use anabranch_lab::own::Module;
use serde_json::{Value, json};

use crate::json::written;
use crate::machine::{Browser, law_bytes};

/// The request.
static REQUEST: Mutex<Vec<u8>> = Mutex::new(Vec::new());

#[link(wasm_import_module = "page")]
#[expect(unsafe_code, reason = "the page's function")]
unsafe extern "C" {
    /// Takes a text and numbers of the module's memory.
    fn emit(text: *const u8, len: usize, numbers: *const f64, count: usize);
}

/// Room for a request of `len` bytes.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "an export has a name that is not mangled")]
pub(crate) extern "C" fn reserve(len: usize) -> *mut u8 {
    let mut request = REQUEST.lock().unwrap_or_else(PoisonError::into_inner);
    *request = vec![0; len];
    request.as_mut_ptr()
}

/// Answers the request.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "an export has a name that is not mangled")]
pub(crate) extern "C" fn answer() {
    std::panic::set_hook(Box::new(|panic| {
        send(&json!({ "kind": "error", "message": format!("a defect of anabranch: {panic}") }), &[]);
    }));
    let request = std::mem::take(&mut *REQUEST.lock().unwrap_or_else(PoisonError::into_inner));
    let mut modules = |name: &str| {
        let bytes = law_bytes(name).ok_or_else(|| format!("{name} is not here: drop the file onto the page"))?;
        Module::on(&Browser, name, bytes).map_err(|error| error.to_string())
    };
    crate::answer(&request, &mut modules, &mut send);
}

fn send(answer: &Value, numbers: &[f64]) {
    let text = written(answer);
    // SAFETY: the page reads `len` initialised bytes at `text`, and `count` numbers at `numbers`, which stay there until it returns.
    #[expect(unsafe_code, reason = "the page's function")]
    unsafe {
        emit(text.as_ptr(), text.len(), numbers.as_ptr(), numbers.len());
    }
}

/// There is no randomness: a simulation has its seed.
fn no_randomness(_: &mut [u8]) -> Result<(), getrandom::Error> {
    Err(getrandom::Error::UNSUPPORTED)
}

getrandom::register_custom_getrandom!(no_randomness);
