//! Parses a text to a tree, by recursive descent.

use super::{ExpressionError, Function, List, Made, Operator, Question, Tree};
use crate::comparison::Comparison;
use crate::series::{self, Kind};

/// The series of a function.
struct Subject<'a> {
    name: &'a str,
    /// The kind of the transformed series.
    kind: Kind,
    made: Option<(Made, Tree)>,
}

pub(super) struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, ExpressionError> {
        match text.len() {
            0..=LENGTH_MAX => Ok(Self { text, rest: text }),
            length => {
                Err(ExpressionError(format!("an expression of {length} bytes is too long: at most {LENGTH_MAX}")))
            }
        }
    }

    pub(super) fn sum(&mut self, depth: usize) -> Result<Tree, ExpressionError> {
        let mut left = self.product(depth)?;
        loop {
            let operator = match () {
                () if self.take("+") => Operator::Add,
                () if self.take("-") => Operator::Subtract,
                () => return Ok(left),
            };
            left = Tree::Binary(operator, Box::new(left), Box::new(self.product(depth)?));
        }
    }

    fn product(&mut self, depth: usize) -> Result<Tree, ExpressionError> {
        let mut left = self.factor(depth)?;
        loop {
            let operator = match () {
                () if self.take("*") => Operator::Multiply,
                () if self.take("/") => Operator::Divide,
                () => return Ok(left),
            };
            left = Tree::Binary(operator, Box::new(left), Box::new(self.factor(depth)?));
        }
    }

    fn factor(&mut self, depth: usize) -> Result<Tree, ExpressionError> {
        if depth >= DEPTH_MAX {
            return Err(self.fault("fewer brackets"));
        }
        if self.take("-") {
            return self.factor(depth + 1).map(|term| Tree::Negative(Box::new(term)));
        }
        if self.take("(") {
            let tree = self.sum(depth + 1)?;
            return self.expect(")").map(|()| tree);
        }
        self.rest = self.rest.trim_start();
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            let length = number_length(self.rest);
            let number = self.rest[..length].parse().map_err(|_| self.fault("a number"))?;
            self.rest = &self.rest[length..];
            return Ok(Tree::Number(number));
        }
        let name = self.name().ok_or_else(|| self.fault("a number, a name or a bracket"))?;
        if series::kind(name).is_some() {
            return Err(ExpressionError(format!(
                "`{name}` is a series: ask for one of its values, as value_at({name}, 5)"
            )));
        }
        if !self.take("(") {
            return Ok(Tree::Name(name.to_owned(), Vec::new()));
        }
        if let Some(function) = Function::named(name)
            && let Some(subject) = self.series(depth)?
        {
            let tree = self.question(name, function, subject, depth)?;
            return self.expect(")").map(|()| tree);
        }
        // `min` and `max` are also functions of numbers, and a measure may have the name of a function: it is followed by labels.
        if Function::named(name).is_some()
            && !matches!(name, "min" | "max")
            && let Some(asked) = self.peeked_name()
        {
            return Err(ExpressionError(series::unknown(asked)));
        }
        // A measure may also have the name of a list: it is followed by labels in quotes.
        let tree = match List::named(name).filter(|_| !self.rest.trim_start().starts_with('\'')) {
            Some(list) => Tree::List(list, self.list(|parser| parser.sum(depth + 1))?),
            None => Tree::Name(name.to_owned(), self.list(Self::label)?),
        };
        self.expect(")").map(|()| tree)
    }

    /// A series in brackets after a function, and its transformation; `None` if something else follows.
    fn series(&mut self, depth: usize) -> Result<Option<Subject<'a>>, ExpressionError> {
        let before = self.rest;
        self.rest = self.rest.trim_start();
        let name = self.name().unwrap_or_default();
        if let Some(made) = Made::named(name)
            && self.take("(")
        {
            let (of, kind) = made.kinds();
            self.rest = self.rest.trim_start();
            let name = self.name().filter(|name| series::kind(name) == Some(of));
            let name = name.ok_or_else(|| {
                self.fault(match of {
                    Kind::Events => "a series of events, such as flow.f0.goodput",
                    Kind::Variable => "a variable, such as flow.f0.window",
                })
            })?;
            self.expect(",")?;
            let width = self.sum(depth + 1)?;
            self.expect(")")?;
            return Ok(Some(Subject { name, kind, made: Some((made, width)) }));
        }
        match series::kind(name) {
            Some(kind) => Ok(Some(Subject { name, kind, made: None })),
            None => {
                self.rest = before;
                Ok(None)
            }
        }
    }

    fn question(
        &mut self,
        name: &str,
        function: Function,
        Subject { name: series, kind, made }: Subject<'_>,
        depth: usize,
    ) -> Result<Tree, ExpressionError> {
        if !function.suits(kind) {
            return Err(ExpressionError(match kind {
                Kind::Events => format!("`{series}` has events, and no {name}: write {name}(bins({series}, 0.1), ...)"),
                Kind::Variable => format!("`{series}` is a variable, and has no {name}: use mean, min or max"),
            }));
        }
        let condition = match function.compares(kind) {
            true => Some((self.comparison()?, self.sum(depth + 1)?)),
            false => None,
        };
        let mut times = Vec::new();
        for _ in 0..function.times() {
            self.expect(",")?;
            times.push(self.sum(depth + 1)?);
        }
        Ok(Tree::Asked(Box::new(Question { function, series: series.to_owned(), made, condition, times })))
    }

    pub(super) fn comparison(&mut self) -> Result<Comparison, ExpressionError> {
        let found = Comparison::SIGNS.iter().find(|(sign, _)| self.take(sign));
        found.map(|&(_, comparison)| comparison).ok_or_else(|| self.fault("one of == != <= >= < >"))
    }

    fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, ExpressionError>,
    ) -> Result<Vec<T>, ExpressionError> {
        let mut items = vec![item(self)?];
        while self.take(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn label(&mut self) -> Result<String, ExpressionError> {
        self.expect("'")?;
        let length = self.rest.find('\'').ok_or_else(|| self.fault("a closing '"))?;
        let label = self.rest[..length].to_owned();
        self.rest = &self.rest[length + 1..];
        Ok(label)
    }

    /// The next name, if a name follows.
    fn peeked_name(&self) -> Option<&'a str> {
        Parser { rest: self.rest.trim_start(), ..*self }.name()
    }

    fn name(&mut self) -> Option<&'a str> {
        let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let bytes = self.rest.as_bytes();
        let mut length = 0;
        while let Some(&byte) = bytes.get(length) {
            let joins = byte == b'-' && length > 0 && bytes.get(length + 1).is_some_and(|&next| is_inner(next.into()));
            // `flow.*.goodput`: all flows.
            let is_all = byte == b'*' && self.rest[..length].ends_with('.') && bytes.get(length + 1) == Some(&b'.');
            // `flow.#.goodput`, `flow.rival#.goodput`: each of them.
            let is_each = byte == b'#' && self.rest[..length].contains('.') && bytes.get(length + 1) == Some(&b'.');
            if !is_inner(byte.into()) && !joins && !is_all && !is_each {
                break;
            }
            length += 1;
        }
        let (name, rest) = self.rest.split_at(length);
        self.rest = rest;
        (!name.is_empty()).then_some(name)
    }

    fn take(&mut self, sign: &str) -> bool {
        match self.rest.trim_start().strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, sign: &str) -> Result<(), ExpressionError> {
        if self.take(sign) { Ok(()) } else { Err(self.fault(&format!("`{sign}`"))) }
    }

    pub(super) fn end(&self) -> Result<(), ExpressionError> {
        if self.rest.trim().is_empty() { Ok(()) } else { Err(self.fault("the end")) }
    }

    fn fault(&self, expected: &str) -> ExpressionError {
        let rest = self.rest.trim_start();
        let found = if rest.is_empty() { "the end".to_owned() } else { format!("`{rest}`") };
        ExpressionError(format!("in `{}`: expected {expected}, found {found}", self.text))
    }
}

/// The length of the number at the beginning of `text`: digits with a point, and an exponent if there is one (`1e9`, `2.5E-3`).
fn number_length(text: &str) -> usize {
    let digits = |from: usize, point: bool| {
        let is_inside = |c: char| c.is_ascii_digit() || point && c == '.';
        text[from..].find(|c| !is_inside(c)).map_or(text.len(), |length| from + length)
    };
    let mantissa = digits(0, true);
    let exponent = text[mantissa..].strip_prefix(['e', 'E']).map(|rest| rest.strip_prefix(['+', '-']).unwrap_or(rest));
    match exponent {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => digits(text.len() - rest.len(), false),
        _ => mantissa,
    }
}

/// The limit of a text: nobody writes longer ones, and trees are walked on the stack.
const LENGTH_MAX: usize = 4096;

/// The limit of nested brackets: nobody writes more, and the parser uses the stack.
const DEPTH_MAX: usize = 64;
