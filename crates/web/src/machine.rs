//! The browser as the machine of laws that are modules: its functions, which `page/machine.js` has.
//!
//! A function that has more to tell than a number leaves bytes behind, which `law_take` copies.

use anabranch_plugin::{Export, Failure, Kind, Machine, Started, TABLE_SIZE};

#[link(wasm_import_module = "page")]
#[expect(unsafe_code, reason = "the page's functions")]
unsafe extern "C" {
    /// Leaves the file of a law of this name; returns whether there is one.
    fn law_find(name: *const u8, len: usize) -> u32;
    /// How many bytes were left.
    fn law_left() -> usize;
    /// Copies the bytes that were left.
    fn law_take(to: *mut u8);
    /// Compiles a module and leaves its exports, a line each. Returns its number; or 0, and leaves why.
    fn law_compile(bytes: *const u8, len: usize) -> u32;
    /// Leaves the SHA-256 of a file in hexadecimal digits.
    fn law_digest(bytes: *const u8, len: usize);
    fn law_forget(module: u32);
    /// Makes an instance. Returns its number; or 0, see `law_failure`.
    fn law_start(module: u32) -> u32;
    /// The address of an instance's table.
    fn law_base(instance: u32) -> usize;
    /// The size of an instance's memory.
    fn law_size(instance: u32) -> usize;
    fn law_end(instance: u32);
    /// Returns whether the call came to its end; else see `law_failure`.
    fn law_call(instance: u32, hook: usize, table: *mut u8) -> u32;
    /// Why the latest call failed: 1 fuel, 2 depth, else leaves the reason.
    fn law_failure() -> u32;
    fn law_read(instance: u32, place: usize, to: *mut u8, len: usize) -> u32;
    fn law_write(instance: u32, place: usize, from: *const u8, len: usize) -> u32;
}

/// The bytes of the law of this name that the page has.
pub(crate) fn law_bytes(name: &str) -> Option<Vec<u8>> {
    // SAFETY: the page reads `len` initialised bytes at `name`.
    #[expect(unsafe_code, reason = "the page's function")]
    let is_there = unsafe { law_find(name.as_ptr(), name.len()) } == 1;
    is_there.then(taken)
}

fn taken() -> Vec<u8> {
    // SAFETY: the page writes as many bytes as it said, and nothing is left in between.
    #[expect(unsafe_code, reason = "the page's functions")]
    unsafe {
        let mut bytes = vec![0; law_left()];
        law_take(bytes.as_mut_ptr());
        bytes
    }
}

fn text() -> String {
    String::from_utf8_lossy(&taken()).into_owned()
}

/// The browser.
#[derive(Debug)]
pub(crate) struct Browser;

#[expect(unsafe_code, reason = "the page's functions")]
impl Machine for Browser {
    fn compile(&self, bytes: &[u8]) -> Result<(u32, Vec<Export>), String> {
        // SAFETY: the page reads `len` initialised bytes at `bytes`.
        match unsafe { law_compile(bytes.as_ptr(), bytes.len()) } {
            0 => Err(text()),
            module => Ok((module, text().lines().filter_map(export).collect())),
        }
    }

    fn digest(&self, bytes: &[u8]) -> String {
        // SAFETY: the page reads `len` initialised bytes at `bytes`.
        unsafe { law_digest(bytes.as_ptr(), bytes.len()) }
        text()
    }

    fn forget(&self, module: u32) {
        // SAFETY: the page takes a number.
        unsafe { law_forget(module) }
    }

    fn start(&self, module: u32) -> Result<Started, Failure> {
        // SAFETY: the page takes numbers.
        unsafe {
            match law_start(module) {
                0 => Err(failed()),
                instance => Ok(Started { instance, base: law_base(instance), size: law_size(instance) }),
            }
        }
    }

    fn end(&self, instance: u32) {
        // SAFETY: the page takes a number.
        unsafe { law_end(instance) }
    }

    fn call(&self, instance: u32, hook: usize, table: &mut [u8; TABLE_SIZE]) -> Result<(), Failure> {
        // SAFETY: the page reads and writes the bytes of the table, which is lent to it alone until it returns.
        match unsafe { law_call(instance, hook, table.as_mut_ptr()) } {
            1 => Ok(()),
            _ => Err(failed()),
        }
    }

    fn read(&self, instance: u32, place: usize, bytes: &mut [u8]) -> bool {
        // SAFETY: the page writes `len` bytes at `bytes`, or none.
        unsafe { law_read(instance, place, bytes.as_mut_ptr(), bytes.len()) == 1 }
    }

    fn write(&self, instance: u32, place: usize, bytes: &[u8]) -> bool {
        // SAFETY: the page reads `len` initialised bytes at `bytes`.
        unsafe { law_write(instance, place, bytes.as_ptr(), bytes.len()) == 1 }
    }
}

fn failed() -> Failure {
    // SAFETY: the page returns a number.
    #[expect(unsafe_code, reason = "the page's function")]
    match unsafe { law_failure() } {
        1 => Failure::OutOfFuel,
        2 => Failure::TooDeep,
        _ => Failure::Trapped(text()),
    }
}

/// A line of the list of exports: what it is, a number, and the name, in which a line's end is left out.
fn export(line: &str) -> Option<Export> {
    let (kind, rest) = line.split_once(' ')?;
    let (number, name) = rest.split_once(' ')?;
    let kind = match kind {
        "memory" => Kind::Memory { least: number.parse().ok()? },
        "plain" => Kind::Plain,
        "address" => Kind::Address,
        _ => Kind::Other,
    };
    Some(Export { name: name.to_owned(), kind })
}
