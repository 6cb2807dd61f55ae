//! JSON: one document, with a newline at its end.

use std::io::{self, Write};

use ferromesh_core::report::Report;
use serde::Serialize;

/// Writes a document, indented.
pub(super) fn write(out: &mut impl Write, document: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    writeln!(out)
}

/// Writes a report, one line for each of its entries: a fleet has hundreds of thousands, and two
/// reports can be compared line by line.
pub(super) fn report(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let Report { outputs, statuses } = report;
    out.write_all(b"{\"outputs\": [")?;
    lines(out, outputs)?;
    out.write_all(b"], \"statuses\": [")?;
    lines(out, statuses)?;
    out.write_all(b"]}\n")
}

fn lines<T: Serialize>(out: &mut impl Write, entries: &[T]) -> io::Result<()> {
    let mut separator: &[u8] = b"\n";
    for entry in entries {
        out.write_all(separator)?;
        serde_json::to_writer(&mut *out, entry)?;
        separator = b",\n";
    }
    if !entries.is_empty() {
        out.write_all(b"\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ferromesh_core::State;
    use ferromesh_core::report::Report;
    use serde_json::{Value, json};

    #[test]
    fn a_report_is_one_document_and_an_entry_is_one_line() {
        let text = |report: &Report| {
            let mut text = Vec::new();
            super::report(&mut text, report).unwrap();
            String::from_utf8(text).unwrap()
        };
        let empty = Report::translation(&State::default());
        assert_eq!(text(&empty), "{\"outputs\": [], \"statuses\": []}\n");
        let mesh = json!({
            "apiVersion": "discovery.mesh.gloo.solo.io/v1",
            "kind": "Mesh",
            "metadata": {"name": "m", "namespace": "n"},
            "spec": {"istio": {"installation": {"cluster": "c", "namespace": "i"}}},
        });
        let mut entries = Vec::new();
        ferromesh_core::manifest::read_value(&mesh, "", &mut entries);
        let objects = entries.into_iter().filter_map(|entry| match entry {
            ferromesh_core::manifest::Entry::Object(object) => Some(object),
            _ => None,
        });
        let changes = objects.map(ferromesh_core::Change::Upsert);
        let report = Report::translation(&State::default().step(changes).0);
        assert_eq!(report.statuses.len(), 1);
        let text = text(&report);
        assert_eq!(text.lines().count(), 3, "{text}");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, serde_json::to_value(&report).unwrap());
    }
}
