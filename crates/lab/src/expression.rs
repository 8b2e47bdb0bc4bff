//! Arithmetic over what a run measured: `flow.f0.max_seq + flow.f1.max_seq`,
//! `100 * (delivered('CTCP', 'error=0.01') / delivered('Vegas', 'error=0.01') - 1)`, `flow.f0.dropped_packets == 0`.
//!
//! Grammar, loosest first:
//!
//! ```text
//! assertion = sum [("==" | "!=" | "<=" | ">=" | "<" | ">") sum]
//! sum       = product {("+" | "-") product}
//! product   = factor {("*" | "/") factor}
//! factor    = "-" factor | number | "(" sum ")" | ("min" | "max") "(" sum {"," sum} ")" | name [ "(" label {"," label} ")" ]
//! label     = "'" text "'"
//! ```
//!
//! A name has letters, digits, `_`, `.` and, between two of them, `-`: a minus sign has a space before or behind it.

use std::fmt;

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression(Tree);

/// A comparison of two expressions.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    left: Expression,
    comparison: Comparison,
    right: Expression,
}

#[derive(Clone, Debug, PartialEq)]
enum Tree {
    Number(f64),
    /// A measure or a gauge of a run, at the variant that the labels name.
    Name(String, Vec<String>),
    Negative(Box<Tree>),
    Binary(Operator, Box<Tree>, Box<Tree>),
    Least(Vec<Tree>),
    Most(Vec<Tree>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    Equal,
    Unequal,
    AtMost,
    AtLeast,
    Below,
    Above,
}

/// Why a text is not an expression, or has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError(pub(crate) String);

impl ExpressionError {
    /// For whoever looks names up.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl std::error::Error for ExpressionError {}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A longer text is no expression that a person wrote, and trees are walked on the stack.
const LENGTH_MAX: usize = 4096;

/// Brackets may stand this deep: more is no expression that a person wrote, and the parser uses the stack.
const DEPTH_MAX: usize = 64;

impl Expression {
    /// Parses `text`.
    ///
    /// # Errors
    /// If it does not follow the grammar.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let mut parser = Parser::new(text)?;
        let tree = parser.sum(0)?;
        parser.end()?;
        Ok(Self(tree))
    }

    /// `name('label', ...)`.
    pub(crate) fn name(name: &str, labels: &[&str]) -> Self {
        Self(Tree::Name(name.to_owned(), labels.iter().map(|&label| label.to_owned()).collect()))
    }

    /// `self - other`.
    pub(crate) fn minus(&self, other: &Self) -> Self {
        Self(Tree::Binary(Operator::Subtract, Box::new(self.0.clone()), Box::new(other.0.clone())))
    }

    /// Computes it; `value` knows what a name at some labels is.
    ///
    /// # Errors
    /// What `value` says.
    pub fn evaluate(&self, value: &mut Lookup<'_>) -> Result<f64, ExpressionError> {
        self.0.evaluate(value)
    }
}

/// What a name with some labels is worth.
pub type Lookup<'a> = dyn FnMut(&str, &[String]) -> Result<f64, ExpressionError> + 'a;

impl Assertion {
    /// Parses `text`, which compares two expressions.
    ///
    /// # Errors
    /// If it does not follow the grammar.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let mut parser = Parser::new(text)?;
        let left = Expression(parser.sum(0)?);
        // Longer signs first: `<=` begins with `<`.
        const SIGNS: [(&str, Comparison); 6] = [
            ("==", Comparison::Equal),
            ("!=", Comparison::Unequal),
            ("<=", Comparison::AtMost),
            (">=", Comparison::AtLeast),
            ("<", Comparison::Below),
            (">", Comparison::Above),
        ];
        let Some(&(_, comparison)) = SIGNS.iter().find(|(sign, _)| parser.take(sign)) else {
            return Err(parser.fault("one of == != <= >= < >"));
        };
        let right = Expression(parser.sum(0)?);
        parser.end()?;
        Ok(Self { left, comparison, right })
    }

    /// The two sides and whether they compare as asserted.
    ///
    /// # Errors
    /// What `value` says.
    pub fn evaluate(&self, value: &mut Lookup<'_>) -> Result<(f64, f64, bool), ExpressionError> {
        let (left, right) = (self.left.evaluate(value)?, self.right.evaluate(value)?);
        let order = left.partial_cmp(&right);
        let holds = match self.comparison {
            Comparison::Equal => order == Some(std::cmp::Ordering::Equal),
            Comparison::Unequal => order.is_some_and(std::cmp::Ordering::is_ne),
            Comparison::AtMost => order.is_some_and(std::cmp::Ordering::is_le),
            Comparison::AtLeast => order.is_some_and(std::cmp::Ordering::is_ge),
            Comparison::Below => order.is_some_and(std::cmp::Ordering::is_lt),
            Comparison::Above => order.is_some_and(std::cmp::Ordering::is_gt),
        };
        Ok((left, right, holds))
    }
}

impl Tree {
    fn evaluate(&self, value: &mut Lookup<'_>) -> Result<f64, ExpressionError> {
        let mut extreme = |terms: &[Self], better: fn(f64, f64) -> f64| {
            let mut values = Vec::with_capacity(terms.len());
            for term in terms {
                values.push(term.evaluate(value)?);
            }
            Ok(values.into_iter().reduce(better).expect("the parser wants at least one"))
        };
        Ok(match self {
            Self::Number(number) => *number,
            Self::Name(name, labels) => value(name, labels)?,
            Self::Negative(term) => -term.evaluate(value)?,
            Self::Least(terms) => extreme(terms, f64::min)?,
            Self::Most(terms) => extreme(terms, f64::max)?,
            Self::Binary(operator, left, right) => {
                let (left, right) = (left.evaluate(value)?, right.evaluate(value)?);
                match operator {
                    Operator::Add => left + right,
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    Operator::Divide => left / right,
                }
            }
        })
    }
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self, ExpressionError> {
        match text.len() {
            0..=LENGTH_MAX => Ok(Self { text, rest: text }),
            length => {
                Err(ExpressionError(format!("an expression of {length} bytes is too long: at most {LENGTH_MAX}")))
            }
        }
    }

    fn sum(&mut self, depth: usize) -> Result<Tree, ExpressionError> {
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
            let length = self.rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(self.rest.len());
            let number = self.rest[..length].parse().map_err(|_| self.fault("a number"))?;
            self.rest = &self.rest[length..];
            return Ok(Tree::Number(number));
        }
        let name = self.name().ok_or_else(|| self.fault("a number, a name or a bracket"))?;
        if !self.take("(") {
            return Ok(Tree::Name(name.to_owned(), Vec::new()));
        }
        let tree = match name {
            "min" => Tree::Least(self.list(|parser| parser.sum(depth + 1))?),
            "max" => Tree::Most(self.list(|parser| parser.sum(depth + 1))?),
            _ => Tree::Name(name.to_owned(), self.list(Self::label)?),
        };
        self.expect(")").map(|()| tree)
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

    fn name(&mut self) -> Option<&'a str> {
        let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let bytes = self.rest.as_bytes();
        let mut length = 0;
        while let Some(&byte) = bytes.get(length) {
            let joins = byte == b'-' && length > 0 && bytes.get(length + 1).is_some_and(|&next| is_inner(next.into()));
            if !is_inner(byte.into()) && !joins {
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

    fn end(&self) -> Result<(), ExpressionError> {
        if self.rest.trim().is_empty() { Ok(()) } else { Err(self.fault("the end")) }
    }

    fn fault(&self, expected: &str) -> ExpressionError {
        let rest = self.rest.trim_start();
        let found = if rest.is_empty() { "the end".to_owned() } else { format!("`{rest}`") };
        ExpressionError(format!("in `{}`: expected {expected}, found {found}", self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str, labels: &[String]) -> Result<f64, ExpressionError> {
        match (name, labels) {
            ("flow.my-flow.max_seq", []) => Ok(7.0),
            ("delivered", [agent, error]) if agent == "CTCP" && error == "error=0.01" => Ok(12102.0),
            ("delivered", [agent, _]) if agent == "Vegas" => Ok(8456.0),
            _ => Err(ExpressionError(format!("unknown {name}"))),
        }
    }

    #[track_caller]
    fn assert_value(text: &str, expected: f64) {
        let got = Expression::parse(text).and_then(|expression| expression.evaluate(&mut value)).unwrap();
        assert!((got - expected).abs() < 1e-9, "{text}: expected {expected}, got {got}");
    }

    #[test]
    fn arithmetic_binds_as_usual() {
        assert_value("1 + 2 * 3", 7.0);
        assert_value("(1 + 2) * 3", 9.0);
        assert_value("8 / 2 / 2 - 1", 1.0);
        assert_value("-2 * -3", 6.0);
        assert_value("min(3, 1 + 1, 5) + max(1, 4)", 6.0);
    }

    #[test]
    fn a_minus_inside_a_name_belongs_to_it() {
        assert_value("flow.my-flow.max_seq - 1", 6.0);
        assert_value("flow.my-flow.max_seq -1", 6.0);
    }

    /// The paper's 43.1 %: 12102 / 8456 = 1.43117.
    #[test]
    fn measures_are_asked_at_labels() {
        let text = "100 * (delivered('CTCP', 'error=0.01') / delivered('Vegas', 'error=0.01') - 1)";
        let gain = Expression::parse(text).unwrap().evaluate(&mut value).unwrap();
        assert!((gain - 43.117).abs() < 0.001, "{gain}");
    }

    #[test]
    fn assertions_compare() {
        let holds = |text: &str| Assertion::parse(text).unwrap().evaluate(&mut value).unwrap().2;
        assert!(holds("flow.my-flow.max_seq == 7"));
        assert!(holds("1 <= 1") && holds("1 >= 1") && holds("1 != 2"));
        assert!(!holds("1 < 1") && !holds("1 > 1") && !holds("0 / 0 == 0 / 0"));
    }

    #[test]
    fn errors_say_what_was_expected() {
        let message = |text: &str| Expression::parse(text).unwrap_err().to_string();
        assert_eq!(message("1 +"), "in `1 +`: expected a number, a name or a bracket, found the end");
        assert_eq!(message("(1"), "in `(1`: expected `)`, found the end");
        assert_eq!(message("1 2"), "in `1 2`: expected the end, found `2`");
        assert_eq!(message("f('a"), "in `f('a`: expected a closing ', found `a`");
        assert!(message(&"(".repeat(1000)).contains("expected fewer brackets"));
        assert_eq!(message(&"1+".repeat(3000)), "an expression of 6000 bytes is too long: at most 4096");
        assert_eq!(
            Assertion::parse("1").unwrap_err().to_string(),
            "in `1`: expected one of == != <= >= < >, found the end"
        );
    }
}
