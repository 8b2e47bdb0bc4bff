//! Charts of stored figures: of tables of docs/benchmarks.md, and of `experiments/field/table.csv`. A chart has no figure that these do not have.

use std::path::Path;

use super::drawing;
use super::files::read;

const PAGE: &str = "docs/benchmarks.md";
const FIELD: &str = "experiments/field/table.csv";

/// Every chart: its file, and the SVG.
pub(super) fn all(root: &Path) -> Result<Vec<(String, String)>, String> {
    let page = read(root, PAGE)?;
    let chart = |name: &str, svg: String| (format!("docs/pictures/{name}.svg"), svg);
    Ok(vec![
        chart("goodput", goodput(&page)?),
        chart("loopback", loopback(&page)?),
        chart("beside", beside(&read(root, FIELD)?)?),
    ])
}

/// Goodput against random loss: programs over UDP, and TCP of the kernel.
fn goodput(page: &str) -> Result<String, String> {
    let programs = table(page, "| goodput in Mbit/s | 0 | 0.1 % | 1 % | 3 % lost |")?;
    let kernel = table(page, "| lost at random | 0 | 0.1 % | 1 % | 3 % |")?;
    let row = |table: &[Vec<String>], name: &str| {
        let found = table.iter().find(|row| row[0].replace('`', "") == name);
        found.cloned().ok_or_else(|| format!("{PAGE}: there is no row {name}"))
    };
    let rows = [
        row(&programs, "anabranch")?,
        row(&programs, "quinn, BBR, credit of 2.5 MB")?,
        row(&kernel, "the kernel's BBR")?,
        row(&programs, "quinn, CUBIC, credit of 64 MiB")?,
        row(&kernel, "the kernel's CUBIC")?,
    ];
    let names = ["anabranch", "quinn's BBR", "kernel's BBR", "quinn's CUBIC", "kernel's CUBIC"];
    let groups = ["no loss", "0.1 % lost", "1 % lost", "3 % lost"].into_iter().enumerate();
    let groups = groups
        .map(|(column, label)| {
            let values = rows.iter().map(|row| number(&row[column + 1]).map(Some)).collect::<Result<_, _>>()?;
            Ok((label.to_owned(), values))
        })
        .collect::<Result<Vec<(String, Vec<Option<f64>>)>, String>>()?;
    let (least, most) = extremes(groups.iter().filter_map(|(_, values)| values[0]));
    let about = format!(
        "Goodput over 100 Mbit/s and 100 ms at four rates of random loss: anabranch has {least} to {most} Mbit/s."
    );
    Ok(drawing::bars(&about, "Goodput over 100 Mbit/s and 100 ms, Mbit/s", &names, &groups))
}

/// The speed on one machine.
fn loopback(page: &str) -> Result<String, String> {
    let (one, many) =
        (table(page, "| one stream | Gbit/s | CPU s/GB |")?, table(page, "| 100 streams | Gbit/s | CPU s/GB |")?);
    let groups = one
        .iter()
        .zip(&many)
        .filter(|(one, _)| !one[0].contains("not encrypted"))
        .map(|(one, many)| {
            let name = one[0].split([',', ' ']).next().unwrap_or_default();
            let name = if name == "TLS" { "TLS, kernel's TCP" } else { name };
            Ok((name.to_owned(), vec![Some(number(&one[1])?), Some(number(&many[1])?)]))
        })
        .collect::<Result<Vec<_>, String>>()?;
    let about = "Speed on loopback with one stream and with a hundred, of anabranch and others.";
    Ok(drawing::bars(about, "On loopback, encrypted, Gbit/s", &["one stream", "100 streams"], &groups))
}

/// The shares of a flow beside one of another law, on random networks.
fn beside(csv: &str) -> Result<String, String> {
    const LAWS: [&str; 4] = ["anabranch", "cubic", "bbr", "copa"];
    let value = |family: &str, figure: &str, law: &str| {
        let begin = format!("{family},{figure},,{law},");
        let found = csv.lines().find_map(|line| line.strip_prefix(&begin));
        found.and_then(|value| value.parse::<f64>().ok()).ok_or_else(|| format!("{FIELD}: there is no {begin}"))
    };
    let mut groups = vec![];
    for (rival, label) in [("cubic", "CUBIC"), ("reno", "Reno"), ("bbr", "BBR"), ("copa", "Copa")] {
        let of = |law: &&str| -> Result<[f64; 3], String> {
            let share = |quantile: &str| value(&format!("beside {rival}"), &format!("share {quantile}"), law);
            Ok([share("p10")?, share("p50")?, share("p90")?])
        };
        groups.push((format!("beside {label}"), LAWS.iter().map(of).collect::<Result<Vec<_>, _>>()?));
    }
    let (least, most) = extremes(groups.iter().map(|(_, laws)| laws[0][1]));
    let about = format!(
        "Share of the goodput beside one flow of CUBIC, Reno, BBR and Copa on random networks: the median of anabranch is {least:.2} to {most:.2}."
    );
    let title = "Share of both flows' goodput: p10, median, p90";
    Ok(drawing::ranges(&about, title, &LAWS, &groups, 0.5))
}

/// The least and the largest value.
fn extremes(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)))
}

/// The rows of the table with this head.
fn table(page: &str, head: &str) -> Result<Vec<Vec<String>>, String> {
    let mut lines = page.lines().skip_while(|line| *line != head).skip(2).peekable();
    if lines.peek().is_none() {
        return Err(format!("{PAGE}: there is no table {head}"));
    }
    let rows = lines.take_while(|line| line.starts_with('|'));
    Ok(rows.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect())
}

/// The number with which a cell begins.
fn number(cell: &str) -> Result<f64, String> {
    let first = cell.split(' ').next().unwrap_or_default();
    first.parse().map_err(|_| format!("{PAGE}: {cell} is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_of_a_table_gives_its_numbers() {
        let page = "x\n\n| a | b |\n| --- | --- |\n| one | 20.82 (19 to 21) |\n| two | x |\n\n| c |\n";
        let rows = table(page, "| a | b |").expect("it is there");
        assert_eq!(rows.len(), 2);
        assert_eq!(number(&rows[0][1]), Ok(20.82));
        assert_eq!(number(&rows[1][1]), Err("docs/benchmarks.md: x is no number".to_owned()));
        assert!(table(page, "| b |").is_err());
    }
}
