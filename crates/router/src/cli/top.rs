//! `inprofiled top`: on a terminal a table that is refreshed in place, otherwise one table after the other.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use inprofile_router::control;
use inprofile_router::watch::{self, COLUMNS, Order, Row, View};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Table, TableState};
use ratatui::{DefaultTerminal, Frame};
use serde_json::Value as Json;

use super::args::Sort;

/// Looks until it is told to stop, or `count` times.
///
/// # Errors
/// The error of the router or the terminal.
pub fn run(
    socket: &Path,
    plain: bool,
    count: Option<u64>,
    every: Duration,
    sort: Sort,
) -> Result<(), String> {
    let by = match sort {
        Sort::Offered => Order::Offered,
        Sort::Sent => Order::Sent,
        Sort::Drops => Order::Drops,
        Sort::Delay => Order::Delay,
        Sort::Name => Order::Name,
    };
    let before = control::stats(socket)?;
    if plain || !io::stdout().is_terminal() {
        return one_after_the_other(socket, before, count, every, by);
    }
    let mut terminal =
        ratatui::try_init().map_err(|e| format!("the terminal: {e}\n  `--plain` needs none"))?;
    let outcome = Screen::new(socket, before, every, by).watch(&mut terminal, count);
    ratatui::restore();
    outcome
}

fn one_after_the_other(
    socket: &Path,
    mut before: Json,
    count: Option<u64>,
    every: Duration,
    by: Order,
) -> Result<(), String> {
    let mut left = count;
    while left != Some(0) {
        std::thread::sleep(every);
        let now = control::stats(socket)?;
        let mut view = View::between(&before, &now);
        watch::sort(&mut view.customers, by);
        let last = left == Some(1);
        let text = watch::plain(&view) + if last { "" } else { "\n" };
        match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
            // Whoever reads has seen enough.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            other => other.map_err(|e| format!("standard output: {e}"))?,
        }
        before = now;
        left = left.map(|n| n - 1);
    }
    Ok(())
}

struct Screen<'a> {
    socket: &'a Path,
    before: Json,
    every: Duration,
    by: Order,
    view: View,
    place: TableState,
    paused: bool,
    /// Why there is nothing new.
    error: Option<String>,
}

impl<'a> Screen<'a> {
    fn new(socket: &'a Path, before: Json, every: Duration, by: Order) -> Screen<'a> {
        let view = View::between(&before, &before);
        Screen { socket, before, every, by, view, place: TableState::default(), paused: false, error: None }
    }

    fn watch(&mut self, terminal: &mut DefaultTerminal, count: Option<u64>) -> Result<(), String> {
        let words = |e: io::Error| format!("the terminal: {e}");
        let (mut next, mut left) = (Instant::now() + self.every, count);
        loop {
            terminal.draw(|frame| self.draw(frame)).map_err(words)?;
            if left == Some(0) {
                return Ok(());
            }
            if event::poll(next.saturating_duration_since(Instant::now())).map_err(words)? {
                if let Event::Key(key) = event::read().map_err(words)?
                    && key.kind == KeyEventKind::Press
                {
                    let interrupt =
                        key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
                    if interrupt || !self.obey(key.code) {
                        return Ok(());
                    }
                }
                continue;
            }
            next = Instant::now() + self.every;
            if !self.paused {
                self.look();
                left = left.map(|n| n - 1);
            }
        }
    }

    /// Whether it goes on.
    fn obey(&mut self, key: KeyCode) -> bool {
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Char('p') => self.paused = !self.paused,
            KeyCode::Char('s') => {
                let all = [Order::Offered, Order::Sent, Order::Drops, Order::Delay, Order::Name];
                let at = all.iter().position(|o| *o == self.by).unwrap_or(0);
                self.by = all[(at + 1) % all.len()];
                watch::sort(&mut self.view.customers, self.by);
            }
            KeyCode::Down => self.place.scroll_down_by(1),
            KeyCode::Up => self.place.scroll_up_by(1),
            KeyCode::PageDown => self.place.scroll_down_by(20),
            KeyCode::PageUp => self.place.scroll_up_by(20),
            KeyCode::Home => self.place.select_first(),
            KeyCode::End => self.place.select_last(),
            _ => {}
        }
        true
    }

    /// The router may be starting anew: what was last seen stays, and why is said.
    fn look(&mut self) {
        match control::stats(self.socket) {
            Ok(now) => {
                self.view = View::between(&self.before, &now);
                watch::sort(&mut self.view.customers, self.by);
                (self.before, self.error) = (now, None);
            }
            Err(e) => self.error = Some(e.lines().next().unwrap_or_default().to_owned()),
        }
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let trouble: Vec<&str> = self.view.trouble.iter().chain(&self.error).map(String::as_str).collect();
        let classes = self.view.classes.len() as u16 + 1;
        let parts = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(trouble.len() as u16),
            Constraint::Length(classes.min(8) + 1),
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .split(frame.area());
        let head = format!("inprofiled: {}", self.view.head.join(" | "));
        frame.render_widget(Paragraph::new(head).style(Modifier::BOLD), parts[0]);
        let red = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
        let lines: Vec<Line<'_>> = trouble.iter().map(|t| Line::styled(*t, red)).collect();
        frame.render_widget(Paragraph::new(lines), parts[1]);
        frame.render_widget(table("class", &self.view.classes), parts[2]);
        let customers = table("customer", &self.view.customers).row_highlight_style(Modifier::REVERSED);
        frame.render_stateful_widget(customers, parts[3], &mut self.place);
        let paused = if self.paused { "paused; " } else { "" };
        let foot =
            format!("{paused}sorted by {:?}; q quit, s sort, p pause, ↑ ↓ PgUp PgDn", self.by).to_lowercase();
        frame.render_widget(Paragraph::new(foot).style(Modifier::DIM), parts[4]);
    }
}

fn table<'a>(first: &'a str, rows: &'a [Row]) -> Table<'a> {
    let right = |text: String| Cell::from(Line::from(text).right_aligned());
    let heads = COLUMNS.iter().enumerate().map(|(i, head)| match i {
        0 => Cell::from(first),
        1 => Cell::from(*head),
        _ => right((*head).to_owned()),
    });
    let body = rows.iter().map(|row| {
        let colours =
            [Color::Reset, Color::Reset, Color::Reset, Color::Reset, Color::Green, Color::Yellow, Color::Red];
        let cells = watch::cells(row).into_iter().enumerate().map(|(i, cell)| {
            let style = Style::new().fg(colours.get(i).copied().unwrap_or(Color::Reset));
            let style = if i == 7 && row.drops > 0.0 { style.fg(Color::Red) } else { style };
            if i < 2 { Cell::from(cell).style(style) } else { right(cell).style(style) }
        });
        ratatui::widgets::Row::new(cells.collect::<Vec<_>>())
    });
    let widths = [
        Constraint::Fill(2),
        Constraint::Length(5),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(19),
    ];
    Table::new(body, widths).header(ratatui::widgets::Row::new(heads).style(Modifier::BOLD))
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    use super::*;

    /// The screen of a terminal of this size.
    fn shown(screen: &mut Screen<'_>, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn the_table_and_what_is_wrong_are_shown() {
        let customer = |name: &str, n: u64| json!({ "name": name, "arrived": n, "arrived_bytes": n * 1000, "waiting": n });
        let stats = |uptime: f64, n: u64| {
            json!({
                "uptime": uptime, "mode": "failed", "failure": "a marker panicked",
                "ports": [{ "interface": "lan0", "operstate": "up" }],
                "directions": [{ "name": "upstream", "adds_up": true, "classes": [customer("assured", n)],
                    "customers": [customer("alice", n), customer("bob", 2 * n)] }],
            })
        };
        let mut screen =
            Screen::new(Path::new("/nowhere"), stats(1.0, 0), Duration::from_secs(1), Order::Offered);
        screen.view = View::between(&screen.before, &stats(2.0, 100));
        watch::sort(&mut screen.view.customers, screen.by);
        let text = shown(&mut screen, 110, 12);
        for part in [
            "failed, up 0 d 00:00:02 | lan0 up",
            "a marker panicked",
            "800 k",
            "1.60 M",
            "sorted by offered; q quit",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(text.find("bob") < text.find("alice"), "most first\n{text}");
        assert!(screen.obey(KeyCode::Char('s')) && screen.obey(KeyCode::Char('p')) && screen.paused);
        assert!(!screen.obey(KeyCode::Char('q')));
        // A router that has gone: what was last seen stays.
        screen.look();
        let text = shown(&mut screen, 110, 12);
        assert!(text.contains("control socket /nowhere") && text.contains("alice"), "{text}");
        // However small, nothing panics.
        for (width, height) in [(1, 1), (20, 3), (80, 5)] {
            shown(&mut screen, width, height);
        }
    }
}
