//! Draws the panes: all four if the screen is large enough, else the focused one.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Paragraph, Row as Cells, Sparkline, Table, TableState, Wrap};
use urscope_analyzer::report::heights;
use urscope_analyzer::{Verdict, analysis::Judgement};
use urscope_rules::Severity;
use urscope_schema::{counted, short_size, since};

use super::dashboard::{Dashboard, Pane};
use super::rows::Row;

/// The smallest size, as columns and lines, at which all panes are shown.
const WIDE: (u16, u16) = (72, 16);

const CHART_HEIGHT: u16 = 2;

/// The largest height of the lines above the panes.
const HEAD: u16 = 5;

/// Draws the screen, with or without colours.
#[derive(Clone, Copy)]
pub(super) struct Painter {
    pub(super) color: bool,
}

impl Painter {
    pub(super) fn draw(self, dashboard: &Dashboard, frame: &mut Frame<'_>) {
        let head = self.head(dashboard);
        let width = frame.area().width;
        let height: usize = head.iter().map(|line| line.width().div_ceil(usize::from(width.max(1))).max(1)).sum();
        let height = Constraint::Length((height as u16).min(HEAD));
        let [area, body, foot] =
            Layout::vertical([height, Constraint::Fill(1), Constraint::Length(1)]).areas(frame.area());
        frame.render_widget(Paragraph::new(head).wrap(Wrap { trim: true }), area);
        if dashboard.snapshot.is_none() {
            let text = dashboard.failed.as_ref().or(dashboard.waiting.as_ref()).map_or("", String::as_str);
            frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }).block(block(false)), body);
        } else if body.width >= WIDE.0 && body.height >= WIDE.1 {
            // As many lines as there are findings, with the head and the frame.
            let found = (dashboard.rows(Pane::Findings).len().max(1) + 3).min(usize::from(body.height) / 2) as u16;
            let [findings, lower] = Layout::vertical([Constraint::Length(found), Constraint::Fill(1)]).areas(body);
            let [processes, right] = Layout::horizontal([Constraint::Fill(6), Constraint::Fill(5)]).areas(lower);
            let [shared, holders] = Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(right);
            for (pane, area) in Pane::ALL.into_iter().zip([findings, processes, shared, holders]) {
                self.pane(dashboard, pane, area, frame);
            }
        } else {
            self.pane(dashboard, dashboard.pane, body, frame);
        }
        let hint = match &dashboard.failed {
            Some(failed) => Line::styled(failed.as_str(), self.severity(Severity::Error)),
            None if dashboard.popup.is_some() => Line::from("Esc back  arrows scroll"),
            None => Line::from("q quit  Tab pane  Enter details  s sort  p pause  ? help"),
        };
        frame.render_widget(Paragraph::new(hint.style(Modifier::DIM)), foot);
        if let Some(popup) = &dashboard.popup {
            frame.render_widget(Clear, body);
            let block = block(true).title(popup.title);
            let text = Paragraph::new(popup.text.as_str()).wrap(Wrap { trim: false }).scroll((popup.scroll, 0));
            frame.render_widget(text.block(block), body);
        }
    }

    fn head(self, dashboard: &Dashboard) -> Vec<Line<'_>> {
        let strong = Style::new().add_modifier(Modifier::BOLD);
        let mut first = vec![Span::styled("urscope ", strong)];
        let mut second = Vec::new();
        match &dashboard.snapshot {
            None => first.push("waiting ".into()),
            Some(snapshot) => {
                let judgement = &snapshot.judgement;
                first.push(if snapshot.judgement.is_running() { "running ".into() } else { "ended ".into() });
                first.push(Span::styled(verdict(judgement), self.grade(judgement)));
                let (calls, errors) = snapshot.calls();
                let number = judgement.processes.len();
                second
                    .push(format!("{} {number} proc, {calls} calls, {errors} failed", since(snapshot.last_ns)).into());
                if snapshot.judgement.is_running()
                    && let Some([calls, errors]) = dashboard.rates()
                {
                    second.push(format!(", {calls} calls/s, {errors} failed/s").into());
                }
            }
        }
        if dashboard.is_paused() {
            first.push(Span::styled(" paused", strong.add_modifier(Modifier::REVERSED)));
        }
        first.push(Span::styled(format!("  {}", dashboard.title), Modifier::DIM));
        let mut lines = vec![Line::from(first), Line::from(second)];
        if let Some(judgement) = dashboard.snapshot.as_ref().map(|snapshot| &snapshot.judgement)
            && let Some(happened) = judgement.happened()
        {
            lines.push(Line::styled(happened, self.grade(judgement)));
        }
        lines
    }

    fn pane(self, dashboard: &Dashboard, pane: Pane, area: Rect, frame: &mut Frame<'_>) {
        let focused = dashboard.pane == pane;
        let rows = dashboard.rows(pane);
        let order = dashboard.order(pane).map_or_else(String::new, |order| format!(", {order}"));
        let count = if pane == Pane::Shared { String::new() } else { format!(": {}{order}", rows.len()) };
        let layout = pane.layout();
        let title = format!("{} {}{count}", pane as usize + 1, layout.name);
        let block = block(focused).title(title);
        let mut inside = block.inner(area);
        frame.render_widget(block, area);
        if pane == Pane::Shared {
            inside = self.pinned(dashboard, inside, frame);
        }
        if rows.is_empty() {
            return frame.render_widget(Paragraph::new(layout.empty).style(Modifier::DIM), inside);
        }
        let head = layout.head;
        let (shown, widths) = widths(head, layout.wide, &rows);
        let mut state = TableState::new();
        if focused && pane != Pane::Shared {
            state.select(Some(dashboard.selected(pane).min(rows.len() - 1)));
        }
        let head = Cells::new(shown.iter().filter_map(|column| head.get(*column).copied())).style(Modifier::DIM);
        let table = Table::new(rows.iter().map(|row| self.cells(row, pane, &shown)), widths).header(head);
        let table = table.column_spacing(1).row_highlight_style(Modifier::REVERSED);
        frame.render_stateful_widget(table, inside, &mut state);
    }

    fn cells<'a>(self, row: &'a Row, pane: Pane, shown: &[usize]) -> Cells<'a> {
        let severity = row.severity.map(|severity| self.severity(severity)).unwrap_or_default();
        let style = if row.faint { Style::new().add_modifier(Modifier::DIM) } else { Style::new() };
        // Only one column shows the severity by its colour.
        let marked = if pane == Pane::Findings { 1 } else { row.cells.len().saturating_sub(1) };
        let cell = |column: &usize| {
            let style = if *column == marked { severity } else { Style::new() };
            Some(Span::styled(row.cells.get(*column)?.as_str(), style))
        };
        Cells::new(shown.iter().filter_map(cell)).style(style)
    }

    /// Draws the pinned bytes and their history. Returns the remaining area.
    fn pinned(self, dashboard: &Dashboard, area: Rect, frame: &mut Frame<'_>) -> Rect {
        let Some(snapshot) = &dashboard.snapshot else { return area };
        let height = if area.height > 6 { CHART_HEIGHT } else { 1 };
        let [line, chart, rest] =
            Layout::vertical([Constraint::Length(1), Constraint::Length(height), Constraint::Fill(1)]).areas(area);
        let now = short_size(snapshot.holders.pinned_bytes);
        let peak = short_size(snapshot.stats.peak.pinned_bytes);
        frame.render_widget(Paragraph::new(format!("pinned {now}, at most {peak}")), line);
        let heights = heights(&snapshot.stats.shared, usize::from(chart.width));
        let style = if self.color { Style::new().fg(Color::Cyan) } else { Style::new() };
        frame.render_widget(Sparkline::default().data(heights).style(style), chart);
        rest
    }

    fn grade(self, judgement: &Judgement) -> Style {
        let worst = judgement.findings.iter().filter(|found| found.excuse.is_none()).map(|found| found.severity).max();
        match worst {
            Some(worst) => self.severity(worst),
            None if judgement.verdict == Verdict::Clean && self.color => Style::new().fg(Color::Green),
            None => Style::new(),
        }
    }

    fn severity(self, severity: Severity) -> Style {
        let color = match severity {
            Severity::Error => Color::Red,
            Severity::Warning => Color::Yellow,
            Severity::Note => Color::Cyan,
        };
        let bold = Style::new().add_modifier(Modifier::BOLD);
        if self.color { bold.fg(color) } else { bold }
    }
}

/// The frame of a pane. The focused one is thick, so that it is visible without colours.
fn block(focused: bool) -> Block<'static> {
    let block = Block::bordered();
    if focused { block.border_type(BorderType::Thick) } else { block.border_style(Modifier::DIM) }
}

/// The verdict, or the number of findings of each severity.
fn verdict(judgement: &Judgement) -> String {
    let grades = Severity::ALL.into_iter().rev().filter_map(|severity| {
        let counts = judgement.findings.iter().filter(|found| found.excuse.is_none() && found.severity == severity);
        let count = counts.count();
        (count > 0).then(|| counted(count, severity.name()))
    });
    let word = match judgement.verdict {
        Verdict::PartlyJudged => Some("partly judged"),
        Verdict::NotJudged => Some("not judged"),
        Verdict::Clean if judgement.findings.is_empty() && judgement.is_running() => Some("clean so far"),
        Verdict::Clean if judgement.findings.is_empty() => Some("clean"),
        Verdict::Clean | Verdict::Findings => None,
    };
    word.map(str::to_owned).into_iter().chain(grades).collect::<Vec<_>>().join(", ")
}

/// The indices of the columns that are not empty, and their widths.
fn widths(head: &[&str], wide: usize, rows: &[Row]) -> (Vec<usize>, Vec<Constraint>) {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.cells.get(column)).map(|cell| cell.chars().count());
        cells.max().unwrap_or_default()
    };
    let columns = head.iter().enumerate().filter(|(column, _)| width(*column) > 0);
    let constraint = |(column, name): (usize, &&str)| {
        let width = width(column).max(name.len()) as u16;
        (column, if column == wide { Constraint::Fill(1) } else { Constraint::Length(width) })
    };
    columns.map(constraint).unzip()
}
