//! Tables: plain columns for lists, a grid for what has several lines.

use comfy_table::{Cell, ContentArrangement, Table, presets};

use super::plain;

/// Columns as `kubectl` has them, without a line around anything.
pub(crate) fn columns(titles: Option<&[&str]>, rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    if let Some(titles) = titles {
        table.set_header(titles);
    }
    for row in rows {
        // An empty cell looks like a mistake, and programs cannot count it.
        table.add_row(row.iter().map(|cell| match plain(cell) {
            cell if cell.is_empty() => Cell::new("-"),
            cell => Cell::new(cell),
        }));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 3));
    }
    table.trim_fmt()
}

/// A grid of cells with several lines each.
pub(crate) fn grid(titles: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::ASCII_FULL)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(titles);
    for row in rows {
        table.add_row(row.iter().map(|cell| Cell::new(plain(cell))));
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_an_empty_cell_is_a_dash() {
        let rows = [["a", "ACCEPTED", ""], ["a-longer-name", "", "3m"]];
        let rows = || rows.map(|row| row.map(str::to_owned).to_vec()).to_vec();
        assert_eq!(
            columns(Some(&["NAME", "STATE", "AGE"]), rows()),
            "NAME            STATE      AGE\na               ACCEPTED   -\na-longer-name   -          3m"
        );
        assert_eq!(
            columns(None, rows()),
            "a               ACCEPTED   -\na-longer-name   -          3m"
        );
    }

    #[test]
    fn cells_of_a_grid_keep_their_lines() {
        let rows = vec![vec!["one\ntwo".to_owned(), "three".to_owned()]];
        assert_eq!(
            grid(&["A", "B"], rows),
            "\
+-----+-------+
| A   | B     |
+=============+
| one | three |
| two |       |
+-----+-------+"
        );
    }

    #[test]
    fn a_terminal_is_given_no_orders() {
        let rows = vec![vec!["\u{1b}[2Jgone".to_owned()]];
        assert_eq!(columns(None, rows.clone()), "\u{fffd}[2Jgone");
        assert!(!grid(&["A"], rows).contains('\u{1b}'));
    }
}
