//! The launch form: a job in the words of a job file. It plans; nothing is launched from here.

use std::collections::BTreeMap;

use ratatui::layout::{Position, Rect};

use super::{buttons, centred};
use crate::config::limits;
use crate::domain::job::{Buying, Constraints, Data, Recovery, Resources, Schedule};
use crate::domain::{Accelerator, GpuHourlyRate, JobSpec, Location, ProviderId, Purchase};
use crate::tui::line_edit::LineEdit;
use crate::tui::paint::Canvas;
use crate::tui::theme::Role;

/// A field: its label, what it wants, its text, what is wrong with it.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) label: &'static str,
    hint: &'static str,
    pub(crate) edit: LineEdit,
    pub(crate) error: Option<String>,
}

/// Which field is which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Name,
    Gpu,
    Count,
    Nodes,
    Models,
    MaxPrice,
    Clouds,
    Regions,
    Law,
    Run,
    Image,
    Hours,
    Checkpoint,
    Recovery,
}

const FIELDS: [(Name, &str, &str); 14] = [
    (Name::Name, "Name", "letters, digits, - _ ."),
    (Name::Gpu, "GPU", "any of these, such as H100 H200; empty: any"),
    (Name::Count, "GPUs a node", ""),
    (Name::Nodes, "Nodes", "all in one zone, all or nothing"),
    (Name::Models, "Paid", "spot on-demand reserved: those allowed"),
    (Name::MaxPrice, "Max $/GPU-h", "empty: no limit"),
    (Name::Clouds, "Clouds", "only these; empty: any"),
    (Name::Regions, "Places", "cloud/region[/zone], only these; empty: any"),
    (Name::Law, "Law", "EU US GB …: only under these; empty: any"),
    (Name::Run, "Run", "a shell command; empty: hold the machines"),
    (Name::Image, "Image", "a container; empty: none"),
    (Name::Hours, "Hours", "expected run time; empty: open-ended"),
    (Name::Checkpoint, "Checkpoint GiB", "moved when the job moves"),
    (Name::Recovery, "Preempted", "restart or stay-down"),
];

/// The form as it stands.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    pub(crate) fields: Vec<Field>,
    /// A field, or one of the two buttons after them.
    pub(crate) focus: usize,
    /// Only the plan is wanted.
    pub(crate) dry_run: bool,
}

/// What a form starts with: from the row that was selected.
#[derive(Debug, Clone, Default)]
pub(crate) struct Preset {
    pub(crate) name: String,
    pub(crate) gpu: String,
    pub(crate) count: u32,
    pub(crate) models: Vec<Purchase>,
    pub(crate) place: Option<Location>,
}

impl Form {
    pub(crate) fn new(preset: &Preset, dry_run: bool) -> Self {
        let models =
            if preset.models.is_empty() { vec![Purchase::Spot, Purchase::OnDemand] } else { preset.models.clone() };
        let text = |name: Name| match name {
            Name::Name => preset.name.clone(),
            Name::Gpu => preset.gpu.clone(),
            Name::Count => preset.count.max(1).to_string(),
            Name::Nodes => "1".to_owned(),
            Name::Models => models.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            Name::Clouds => preset.place.as_ref().map_or_else(String::new, |p| p.provider.to_string()),
            Name::Regions => preset.place.as_ref().map_or_else(String::new, ToString::to_string),
            Name::Checkpoint => "0".to_owned(),
            Name::Recovery => "restart".to_owned(),
            Name::MaxPrice | Name::Law | Name::Run | Name::Image | Name::Hours => String::new(),
        };
        let fields = FIELDS
            .iter()
            .map(|(name, label, hint)| Field { label, hint, edit: LineEdit::with(&text(*name)), error: None })
            .collect();
        Self { fields, focus: 0, dry_run }
    }

    /// The first of the buttons.
    pub(crate) fn cancel(&self) -> usize {
        self.fields.len()
    }

    pub(crate) fn step(&mut self, forward: bool) {
        let n = self.fields.len() + 2;
        self.focus = if forward { (self.focus + 1) % n } else { (self.focus + n - 1) % n };
    }

    pub(crate) fn edit(&mut self) -> Option<&mut LineEdit> {
        let focus = self.focus;
        self.fields.get_mut(focus).map(|f| {
            f.error = None;
            &mut f.edit
        })
    }

    fn text(&self, name: Name) -> &str {
        FIELDS
            .iter()
            .position(|(n, ..)| *n == name)
            .and_then(|i| self.fields.get(i))
            .map_or("", |f| f.edit.text().trim())
    }

    /// The job that is meant, or what is wrong, field by field; the focus goes to the first that is.
    pub(crate) fn spec(&mut self, accelerators: impl Fn(&str) -> Result<Vec<Accelerator>, String>) -> Option<JobSpec> {
        let mut wrong: Vec<(Name, String)> = Vec::new();
        let name = self.text(Name::Name).to_owned();
        if name.is_empty() {
            wrong.push((Name::Name, "a job needs a name".to_owned()));
        } else if !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) || name.len() > 63 {
            wrong.push((Name::Name, "at most 63 letters, digits, - _ and .".to_owned()));
        }
        let words = |name: Name| -> Vec<String> {
            self.text(name).split([' ', ',']).filter(|w| !w.is_empty()).map(str::to_owned).collect()
        };
        let as_written = words(Name::Gpu);
        let mut chips: Vec<Accelerator> = Vec::new();
        for word in &as_written {
            match accelerators(word) {
                Ok(found) => chips.extend(found.into_iter().filter(|f| !chips.contains(f)).collect::<Vec<_>>()),
                Err(error) => wrong.push((Name::Gpu, error)),
            }
        }
        let mut whole = |name: Name| match self.text(name).parse::<u32>() {
            Ok(n) if (1..=1_024).contains(&n) => n,
            _ => {
                wrong.push((name, "a whole number from 1 to 1024".to_owned()));
                1
            }
        };
        let count = whole(Name::Count);
        let nodes = whole(Name::Nodes);
        let mut models = Vec::new();
        for word in words(Name::Models) {
            match Purchase::parse(&word) {
                Some(model) if !models.contains(&model) => models.push(model),
                Some(_) => {}
                None => wrong.push((Name::Models, format!("'{word}' is none of spot, on-demand, reserved"))),
            }
        }
        if models.is_empty() {
            wrong.push((Name::Models, "at least one way to pay".to_owned()));
        }
        let limit = self.text(Name::MaxPrice).trim_start_matches('$');
        let max_usd_per_gpu_hour = if limit.is_empty() {
            None
        } else {
            match GpuHourlyRate::parse_usd(limit) {
                Ok(rate) if rate > GpuHourlyRate::ZERO => Some(rate),
                _ => {
                    wrong.push((Name::MaxPrice, "an amount in USD, such as 3.29".to_owned()));
                    None
                }
            }
        };
        let mut regions = Vec::new();
        for word in words(Name::Regions) {
            match word.parse::<Location>() {
                Ok(location) => regions.push(location),
                Err(error) => wrong.push((Name::Regions, error.to_string())),
            }
        }
        let mut jurisdictions: Vec<String> = Vec::new();
        for word in words(Name::Law) {
            let within = crate::catalogue::regions::within(&word);
            if within.is_empty() {
                wrong.push((Name::Law, format!("no place is under '{word}'; write EU, EEA, US or a country's code")));
            }
            jurisdictions.extend(within);
        }
        jurisdictions.sort();
        jurisdictions.dedup();
        let mut amount = |name: Name, most: f64| match self.text(name) {
            "" => None,
            text => match text.parse::<f64>() {
                Ok(v) if v.is_finite() && (0.0..=most).contains(&v) => Some(v),
                _ => {
                    wrong.push((name, format!("a number from 0 to {most}")));
                    None
                }
            },
        };
        let duration_hours = amount(Name::Hours, 87_600.0).filter(|h| *h > 0.0);
        let checkpoint_gib = amount(Name::Checkpoint, 1e6).unwrap_or(0.0);
        let recovery = match self.text(Name::Recovery) {
            "restart" | "" => Recovery::Restart,
            "stay-down" => Recovery::StayDown,
            _ => {
                wrong.push((Name::Recovery, "restart or stay-down".to_owned()));
                Recovery::Restart
            }
        };
        let optional = |name: Name| Some(self.text(name).to_owned()).filter(|t| !t.is_empty());
        let spec = JobSpec {
            name,
            run: optional(Name::Run),
            image: optional(Name::Image),
            env: BTreeMap::new(),
            resources: Resources {
                accelerators: chips,
                accelerators_as_written: as_written,
                min_gpu_memory_gib: None,
                count,
                nodes,
                vcpus: None,
                memory_gib: None,
            },
            buying: Buying { models, max_usd_per_gpu_hour },
            constraints: Constraints {
                providers: words(Name::Clouds).into_iter().map(ProviderId::from).collect(),
                regions,
                jurisdictions,
                ..Constraints::default()
            },
            data: Data { checkpoint_gib, ..Data::default() },
            schedule: Schedule {
                duration_hours,
                deadline: None,
                recovery,
                restart_loss_hours: limits::RESTART_LOSS_HOURS,
            },
        };
        for field in &mut self.fields {
            field.error = None;
        }
        let mut first = None;
        for (name, error) in wrong {
            if let Some(at) = FIELDS.iter().position(|(n, ..)| *n == name) {
                if let Some(field) = self.fields.get_mut(at) {
                    field.error.get_or_insert(error);
                }
                first = Some(first.map_or(at, |f: usize| f.min(at)));
            }
        }
        match first {
            Some(at) => {
                self.focus = at;
                None
            }
            None => Some(spec),
        }
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas<'_>, screen: Rect) -> Option<Position> {
        let area = centred(screen, 80, self.fields.len() as u16 + 6);
        canvas.fill(area, Role::Dialog);
        let title = if self.dry_run { " Plan a launch (nothing is done) " } else { " Launch " };
        let inner = canvas.boxed(area, Role::DialogBorder, &[(title.into(), Role::Title)], &[]);
        // On a low screen the fields scroll; the buttons stay.
        let room = usize::from(inner.height.saturating_sub(3)).max(1);
        let offset = (self.focus.min(self.fields.len() - 1) + 1).saturating_sub(room);
        let mut cursor = None;
        let label_wide = 16;
        let value_wide = 56.min(inner.width.saturating_sub(label_wide + 3));
        for (i, field) in self.fields.iter().enumerate().skip(offset).take(room) {
            let y = inner.y + (i - offset) as u16 + u16::from(inner.height as usize > room + 2);
            let focused = i == self.focus;
            canvas.text(inner.x + 1, y, 1, if focused { "▸" } else { " " }, Role::Key);
            canvas.text(inner.x + 2, y, label_wide - 1, field.label, if focused { Role::Title } else { Role::Muted });
            let x = inner.x + 2 + label_wide;
            let (shown, at) = field.edit.window(value_wide);
            canvas.text(x, y, value_wide, &format!("{shown:<w$}", w = usize::from(value_wide)), Role::Input);
            if focused {
                cursor = Some(Position { x: x + at, y });
            }
            if field.error.is_some() {
                canvas.text(x + value_wide + 1, y, 2, "✕", Role::Failed);
            }
        }
        if let Some(field) = self.fields.get(self.focus) {
            let y = inner.bottom().saturating_sub(2);
            let (text, role) = field.error.as_deref().map_or((field.hint, Role::Muted), |e| (e, Role::Failed));
            canvas.text(inner.x + 2, y, inner.width.saturating_sub(3), text, role);
        }
        let y = inner.bottom().saturating_sub(1);
        canvas.text(inner.x + 1, y, 40, "Tab next field  Enter plan  Esc cancel", Role::Muted);
        let focus = self.focus.checked_sub(self.fields.len());
        buttons(canvas, Rect { y, height: 1, ..inner }, &[("Cancel", false), ("Plan", false)], focus, |_| true);
        cursor
    }
}
