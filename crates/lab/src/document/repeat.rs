//! Elements of a list that stand for several: `[[flow]]` with `count = 10` and `id = "f#"` is ten flows, `f0` to `f9`.
//!
//! They are expanded when the file is read, so overrides, checks and messages see the elements: `--set flow.f3.window=50` sets one
//! of them, `flow.*.window=50` all.

use super::{Node, VALUES_MAX, Value, values};
use crate::diagnostic::Fault;

/// The lists whose elements may have a count.
const LISTS: [&str; 4] = ["link", "flow", "host", "route"];

/// The key of the number of elements.
const COUNT: &str = "count";

/// The key that names an element.
const ID: &str = "id";

/// The character that becomes the number of an element, from 0.
const NUMBER: char = '#';

/// The key that may be a list with one value for each.
const EACH: &str = "start";

/// The limit of flows or links.
pub(crate) const COUNT_MAX: i64 = 1000;

/// Writes out all elements with a count. `left` is the number of values that may still be made.
pub(super) fn write_out(root: &mut Node, left: &mut usize) -> Result<(), Fault> {
    let Value::Table(entries) = &mut root.value else { return Ok(()) };
    for (_, list) in entries.iter_mut().filter(|(key, _)| LISTS.contains(&key.name.as_str())) {
        let Value::Array(elements) = &mut list.value else { continue };
        let mut all = Vec::with_capacity(elements.len());
        for element in std::mem::take(elements) {
            all.extend(repeated(element, left)?);
        }
        *elements = all;
    }
    Ok(())
}

fn repeated(mut element: Node, left: &mut usize) -> Result<Vec<Node>, Fault> {
    let Value::Table(entries) = &mut element.value else { return Ok(vec![element]) };
    let Some(position) = entries.iter().position(|(key, _)| key.name == COUNT) else { return Ok(vec![element]) };
    let (_, count) = entries.remove(position);
    let Value::Integer(number @ 1..=COUNT_MAX) = count.value else {
        let fault = Fault::new(format!("`{COUNT}` says how many there are of this"));
        return Err(fault.remedy(format!("use a whole number from 1 to {COUNT_MAX}")).at(&count.place));
    };
    if let Some((_, node)) = entries.iter().find(|(key, _)| key.name == EACH)
        && let Value::Array(values) = &node.value
        && values.len() as i64 != number
    {
        let fault = Fault::new(format!("{} values of `{EACH}` for {number} elements", values.len()));
        return Err(fault.remedy("write one for each, or one for all").at(&node.place));
    }
    if let Some((_, node)) = entries.iter().find(|(key, _)| key.name == ID)
        && let Value::String(id) = &node.value
        && number > 1
        && !id.contains(NUMBER)
    {
        let fault = Fault::new(format!("{number} elements cannot all be called `{id}`"));
        let remedy = format!("put `{NUMBER}` in it, which becomes 0 to {}, as in \"f{NUMBER}\"", number - 1);
        return Err(fault.remedy(remedy).at(&node.place));
    }
    let all = number as usize * values(&element);
    let Some(rest) = left.checked_sub(all) else {
        let fault =
            Fault::new(format!("written out, all elements with a `{COUNT}` have more than {VALUES_MAX} values"));
        return Err(fault.remedy("use a smaller one, or shorter lists in the element").at(&count.place));
    };
    *left = rest;
    let one = |index: i64| {
        let mut one = element.clone();
        if let Value::Table(entries) = &mut one.value
            && let Some((_, node)) = entries.iter_mut().find(|(key, _)| key.name == EACH)
            && let Value::Array(values) = &node.value
        {
            *node = values[index as usize].clone();
        }
        number_names(&mut one, &index.to_string());
        one
    };
    Ok((0..number).map(one).collect())
}

fn number_names(node: &mut Node, number: &str) {
    match &mut node.value {
        Value::String(text) => *text = text.replace(NUMBER, number),
        Value::Array(elements) => elements.iter_mut().for_each(|node| number_names(node, number)),
        Value::Table(entries) => entries.iter_mut().for_each(|(_, node)| number_names(node, number)),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => {}
    }
}
