//! Themes: what a thing means (a [`Role`]) to how it looks. Data in `themes/*.toml`; a theme may inherit another and is
//! brought down to what the terminal can do. Nothing is told by colour alone: glyphs and words carry the meaning.

use std::collections::BTreeMap;

use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;

/// How many colours the terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ColorChoice {
    /// None: `NO_COLOR`, `--color never`, `TERM=dumb`. No SGR colour is written.
    Never,
    /// The 16 of the terminal's own palette: what is safe where nothing is known.
    #[default]
    Ansi16,
    /// The 256 of xterm.
    Ansi256,
    /// Any: `COLORTERM=truecolor` or `24bit`.
    TrueColor,
}

impl ColorChoice {
    /// What the environment's texts say: `NO_COLOR` (set and not empty), `COLORTERM`, `TERM`. Only what is stated
    /// counts; a terminal that says nothing gets 16 colours.
    pub fn detect(no_color: Option<&str>, colorterm: Option<&str>, term: Option<&str>) -> Self {
        let term = term.unwrap_or_default();
        if no_color.is_some_and(|v| !v.is_empty()) || term == "dumb" {
            return Self::Never;
        }
        if matches!(colorterm, Some("truecolor" | "24bit")) || term.ends_with("-direct") {
            Self::TrueColor
        } else if term.contains("256color") {
            Self::Ansi256
        } else {
            Self::Ansi16
        }
    }
}

macro_rules! roles {
    ($($variant:ident = $name:literal),+ $(,)?) => {
        /// What a piece of the screen means.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "the names say it; themes/terminal.toml lists them")]
        pub enum Role { $($variant),+ }
        impl Role {
            /// Every role.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// Its name in a theme file.
            pub const fn name(self) -> &'static str { match self { $(Self::$variant => $name),+ } }
        }
    };
}

roles! {
    Text = "text", Muted = "muted", Title = "title", Border = "border", BorderFocus = "border_focus", Brand = "brand",
    ModeLive = "mode_live", ModeDemo = "mode_demo", ModeReadOnly = "mode_read_only", Column = "column",
    Available = "available", Limited = "limited", None = "none", Unknown = "unknown", Stale = "stale",
    Money = "money", Cheaper = "cheaper", Dearer = "dearer", Published = "published", Estimated = "estimated",
    Measured = "measured", Running = "running", Moving = "moving", Waiting = "waiting", Failed = "failed",
    Ended = "ended", Selection = "selection", SelectionIdle = "selection_idle", Key = "key", Alert = "alert",
    Error = "error", Notice = "notice", Input = "input", Match = "match", Spark = "spark",
    Heat1 = "heat1", Heat2 = "heat2", Heat3 = "heat3", Heat4 = "heat4", Heat5 = "heat5",
    Dialog = "dialog", DialogBorder = "dialog_border", DangerBorder = "danger_border",
    Button = "button", ButtonFocus = "button_focus", ButtonDanger = "button_danger",
}

/// Why a theme cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThemeError {
    /// The file is not a theme.
    #[error("theme '{name}': {message}")]
    Malformed {
        /// Which.
        name: String,
        /// What is wrong, and where.
        message: String,
    },
    /// There is no such theme.
    #[error("there is no theme '{name}'; there are {known}")]
    NotFound {
        /// As asked for.
        name: String,
        /// The ones there are.
        known: String,
    },
}

/// A role's look as written: a colour alone, or a table.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Written {
    Colour(String),
    Table(WrittenStyle),
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenStyle {
    fg: Option<String>,
    bg: Option<String>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    reverse: bool,
}

/// A theme file as written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    title: String,
    #[serde(default)]
    inherits: Option<String>,
    #[serde(default)]
    palette: BTreeMap<String, String>,
    #[serde(default)]
    roles: BTreeMap<String, Written>,
    /// What replaces the terminal theme's roles where there are 16 colours only.
    #[serde(default)]
    ansi: BTreeMap<String, Written>,
}

/// The themes there are.
#[derive(Debug, Clone)]
pub struct Themes {
    files: Vec<File>,
}

const BUNDLED: [&str; 6] = [
    include_str!("../../themes/dark.toml"),
    include_str!("../../themes/light.toml"),
    include_str!("../../themes/high-contrast.toml"),
    include_str!("../../themes/colour-blind.toml"),
    include_str!("../../themes/terminal.toml"),
    include_str!("../../themes/mono.toml"),
];

/// A theme as used: a style for every role.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub title: String,
    styles: Vec<Style>,
}

impl Theme {
    /// The style of a role.
    pub fn style(&self, role: Role) -> Style {
        self.styles.get(role as usize).copied().unwrap_or_default()
    }
}

impl Themes {
    /// The bundled themes, and more: texts of theme files from the configuration, which replace bundled ones of the same name.
    pub fn load<'a>(more: impl IntoIterator<Item = &'a str>) -> Result<Self, ThemeError> {
        let mut files: Vec<File> = Vec::new();
        for text in BUNDLED.into_iter().chain(more) {
            let file: File = toml::from_str(text).map_err(|e| ThemeError::Malformed {
                name: text.lines().find_map(|l| l.strip_prefix("name = ")).unwrap_or("?").trim_matches('"').to_owned(),
                message: e.to_string().trim().replace('\n', " "),
            })?;
            for role in file.roles.keys().chain(file.ansi.keys()) {
                if !Role::ALL.iter().any(|r| r.name() == role) {
                    return Err(ThemeError::Malformed {
                        name: file.name,
                        message: format!("there is no role '{role}'"),
                    });
                }
            }
            files.retain(|f| f.name != file.name);
            files.push(file);
        }
        let themes = Self { files };
        for file in &themes.files {
            themes.get(&file.name, ColorChoice::TrueColor)?;
            themes.get(&file.name, ColorChoice::Ansi16)?;
        }
        Ok(themes)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|f| f.name.as_str())
    }

    /// The one after this in the list, round and round.
    pub fn next(&self, name: &str) -> &str {
        let at = self.files.iter().position(|f| f.name == name).map_or(0, |i| (i + 1) % self.files.len());
        self.files.get(at).map_or("dark", |f| &f.name)
    }

    /// What is used where nothing is asked for: own colours where they can be shown truly, else the terminal's.
    pub fn default_name(colors: ColorChoice) -> &'static str {
        match colors {
            ColorChoice::Never => "mono",
            ColorChoice::Ansi16 => "terminal",
            ColorChoice::Ansi256 | ColorChoice::TrueColor => "dark",
        }
    }

    fn file(&self, name: &str) -> Result<&File, ThemeError> {
        self.files.iter().find(|f| f.name == name).ok_or_else(|| ThemeError::NotFound {
            name: name.to_owned(),
            known: self.names().collect::<Vec<_>>().join(", "),
        })
    }

    /// A theme, brought down to what the terminal can do.
    pub fn get(&self, name: &str, colors: ColorChoice) -> Result<Theme, ThemeError> {
        let asked = self.file(name)?;
        let mut looks: BTreeMap<&str, (&Written, &File)> = BTreeMap::new();
        let mut palette: BTreeMap<&str, &str> = BTreeMap::new();
        let source = match colors {
            ColorChoice::Never => "mono",
            ColorChoice::Ansi16 if name != "mono" => "terminal",
            _ => name,
        };
        // From the ancestor down, so that the heir's words win; eight is deeper than anyone inherits, and ends a ring.
        let mut line = vec![self.file(source)?];
        while let Some(parent) = line.last().and_then(|f| f.inherits.as_deref()) {
            if line.len() > 8 {
                return Err(ThemeError::Malformed {
                    name: name.to_owned(),
                    message: "it inherits in a ring".to_owned(),
                });
            }
            line.push(self.file(parent)?);
        }
        for file in line.into_iter().rev() {
            palette.extend(file.palette.iter().map(|(k, v)| (k.as_str(), v.as_str())));
            looks.extend(file.roles.iter().map(|(k, v)| (k.as_str(), (v, file))));
        }
        if colors == ColorChoice::Ansi16 {
            looks.extend(asked.ansi.iter().map(|(k, v)| (k.as_str(), (v, asked))));
        }
        let base = Style::default();
        let text = looks.get("text").map_or(Ok(base), |(w, f)| style(w, f, &palette, colors, base))?;
        let dialog = looks.get("dialog").map_or(Ok(text), |(w, f)| style(w, f, &palette, colors, text))?;
        let mut styles = Vec::with_capacity(Role::ALL.len());
        for role in Role::ALL {
            let under =
                if matches!(role, Role::Dialog | Role::DialogBorder | Role::DangerBorder) { dialog } else { text };
            // A role paints its foreground over whatever lies below; only those that state a background have one.
            let look = match looks.get(role.name()) {
                Some((w, f)) => style(w, f, &palette, colors, base)?,
                None => base,
            };
            styles.push(match role {
                Role::Text => text,
                Role::Dialog | Role::DialogBorder | Role::DangerBorder => under.patch(look),
                _ => look,
            });
        }
        Ok(Theme { name: asked.name.clone(), title: asked.title.clone(), styles })
    }
}

fn style(
    written: &Written,
    file: &File,
    palette: &BTreeMap<&str, &str>,
    colors: ColorChoice,
    base: Style,
) -> Result<Style, ThemeError> {
    let table = match written {
        Written::Colour(c) => WrittenStyle { fg: Some(c.clone()), ..WrittenStyle::default() },
        Written::Table(t) => t.clone(),
    };
    let colour = |text: &Option<String>| -> Result<Option<Color>, ThemeError> {
        let Some(text) = text else { return Ok(None) };
        let text = palette.get(text.as_str()).copied().unwrap_or(text);
        let colour = parse_colour(text).ok_or_else(|| ThemeError::Malformed {
            name: file.name.clone(),
            message: format!("'{text}' is neither a colour nor in the palette"),
        })?;
        Ok(Some(downgrade(colour, colors)))
    };
    let mut out = base;
    if colors != ColorChoice::Never {
        if let Some(fg) = colour(&table.fg)? {
            out = out.fg(fg);
        }
        if let Some(bg) = colour(&table.bg)? {
            out = out.bg(bg);
        }
    }
    for (on, modifier) in [
        (table.bold, Modifier::BOLD),
        (table.dim, Modifier::DIM),
        (table.italic, Modifier::ITALIC),
        (table.underline, Modifier::UNDERLINED),
        (table.reverse, Modifier::REVERSED),
    ] {
        if on {
            out = out.add_modifier(modifier);
        }
    }
    Ok(out)
}

fn parse_colour(text: &str) -> Option<Color> {
    if let Some(hex) = text.strip_prefix('#') {
        let n = u32::from_str_radix(hex, 16).ok().filter(|_| hex.len() == 6)?;
        return Some(Color::Rgb((n >> 16) as u8, (n >> 8) as u8, n as u8));
    }
    Some(match text {
        "default" => Color::Reset,
        "black" => Color::Black,
        "red" => Color::Red,
        "green" => Color::Green,
        "yellow" => Color::Yellow,
        "blue" => Color::Blue,
        "magenta" => Color::Magenta,
        "cyan" => Color::Cyan,
        "white" => Color::Gray,
        _ => return None,
    })
}

/// The nearest colour of xterm's 256 (cube and grey ramp; the first 16 are the user's own and mean nothing certain).
fn downgrade(colour: Color, colors: ColorChoice) -> Color {
    let Color::Rgb(r, g, b) = colour else { return colour };
    match colors {
        ColorChoice::TrueColor => colour,
        ColorChoice::Never | ColorChoice::Ansi16 => Color::Reset,
        ColorChoice::Ansi256 => {
            const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
            let nearest = |v: u8| (0..6_u8).min_by_key(|i| STEPS[usize::from(*i)].abs_diff(v)).unwrap_or(0);
            let (cr, cg, cb) = (nearest(r), nearest(g), nearest(b));
            let far = |x: (u8, u8, u8)| {
                let d = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
                d(x.0, r) + d(x.1, g) + d(x.2, b)
            };
            let cube = (STEPS[usize::from(cr)], STEPS[usize::from(cg)], STEPS[usize::from(cb)]);
            let step = ((u32::from(r) + u32::from(g) + u32::from(b)) / 3).saturating_sub(3) / 10;
            let step = step.min(23) as u8;
            let grey = 8 + 10 * step;
            if far((grey, grey, grey)) < far(cube) {
                Color::Indexed(232 + step)
            } else {
                Color::Indexed(16 + 36 * cr + 6 * cg + cb)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(colour: Color) -> f64 {
        let Color::Rgb(r, g, b) = colour else { panic!("{colour:?} is not RGB") };
        let part = |v: u8| {
            let v = f64::from(v) / 255.0;
            if v <= 0.03928 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b)
    }

    /// WCAG 2 contrast ratio.
    fn contrast(a: Color, b: Color) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn op30_own_themes_have_a_contrast_of_four_and_a_half() {
        let themes = Themes::load([]).unwrap();
        for name in ["dark", "light", "high-contrast", "colour-blind"] {
            let theme = themes.get(name, ColorChoice::TrueColor).unwrap();
            let ground = theme.style(Role::Text).bg.unwrap();
            let dialog = theme.style(Role::Dialog).bg.unwrap();
            for role in Role::ALL {
                let style = theme.style(*role);
                let fg = style.fg.unwrap_or(theme.style(Role::Text).fg.unwrap());
                for bg in [style.bg.unwrap_or(ground), style.bg.unwrap_or(dialog)] {
                    let ratio = contrast(fg, bg);
                    assert!(ratio >= 4.5, "{name}: {} has {ratio:.2}", role.name());
                }
            }
        }
    }

    #[test]
    fn op30_at_16_colours_the_terminals_own_ground_is_kept_and_no_text_equals_its_ground() {
        let themes = Themes::load([]).unwrap();
        for name in themes.names() {
            let theme = themes.get(name, ColorChoice::Ansi16).unwrap();
            assert_eq!(theme.style(Role::Text).bg, None, "{name}");
            for role in Role::ALL {
                let style = theme.style(*role);
                assert!(style.fg.is_none() || style.fg != style.bg, "{name}: {}", role.name());
                assert!(!matches!(style.fg, Some(Color::Rgb(..) | Color::Indexed(_))), "{name}: {}", role.name());
            }
        }
    }

    #[test]
    fn op31_what_must_be_told_apart_looks_different_in_every_theme_at_every_depth() {
        let groups: [&[Role]; 4] = [
            &[Role::Available, Role::Limited, Role::None, Role::Unknown],
            &[Role::Running, Role::Moving, Role::Waiting, Role::Failed, Role::Ended],
            &[Role::Measured, Role::Published, Role::Estimated],
            &[Role::Heat1, Role::Heat2, Role::Heat3, Role::Heat4, Role::Heat5],
        ];
        let themes = Themes::load([]).unwrap();
        for depth in [ColorChoice::TrueColor, ColorChoice::Ansi256, ColorChoice::Ansi16, ColorChoice::Never] {
            for name in themes.names() {
                let theme = themes.get(name, depth).unwrap();
                for group in groups {
                    for (i, a) in group.iter().enumerate() {
                        for b in &group[i + 1..] {
                            assert_ne!(theme.style(*a), theme.style(*b), "{name} {depth:?}: {} {}", a.name(), b.name());
                        }
                    }
                }
                for role in [Role::Selection, Role::SelectionIdle, Role::Stale, Role::ModeDemo, Role::Error] {
                    assert_ne!(theme.style(role), theme.style(Role::Text), "{name} {depth:?}: {}", role.name());
                }
            }
        }
    }

    #[test]
    fn op32_no_color_means_no_colour_at_all() {
        let themes = Themes::load([]).unwrap();
        for name in themes.names() {
            let theme = themes.get(name, ColorChoice::Never).unwrap();
            for role in Role::ALL {
                let style = theme.style(*role);
                assert!(style.fg.is_none() && style.bg.is_none(), "{name}: {}", role.name());
            }
        }
    }

    #[test]
    fn op32_the_number_of_colours_is_what_the_environment_states() {
        use ColorChoice as C;
        for (no_color, colorterm, term, expected) in [
            (None, None, None, C::Ansi16),
            (None, None, Some("xterm"), C::Ansi16),
            (None, None, Some("linux"), C::Ansi16),
            (None, None, Some("xterm-256color"), C::Ansi256),
            (None, Some("truecolor"), Some("xterm-256color"), C::TrueColor),
            (None, Some("24bit"), Some("xterm"), C::TrueColor),
            (None, Some("1"), Some("xterm"), C::Ansi16),
            (Some("1"), Some("truecolor"), Some("xterm-256color"), C::Never),
            (Some(""), Some("truecolor"), Some("xterm"), C::TrueColor),
            (None, Some("truecolor"), Some("dumb"), C::Never),
        ] {
            assert_eq!(C::detect(no_color, colorterm, term), expected, "{no_color:?} {colorterm:?} {term:?}");
        }
    }

    #[test]
    fn every_bundled_theme_names_every_role_and_a_wrong_one_is_told() {
        let themes = Themes::load([]).unwrap();
        for name in ["dark", "light", "terminal", "mono"] {
            let file = themes.file(name).unwrap();
            for role in Role::ALL {
                assert!(file.roles.contains_key(role.name()), "{name} lacks {}", role.name());
            }
        }
        let wrong = Themes::load(["name = \"x\"\ntitle = \"X\"\n[roles]\nnosuch = \"red\"\n"]).unwrap_err();
        assert_eq!(wrong.to_string(), "theme 'x': there is no role 'nosuch'");
        let ring = Themes::load(["name = \"x\"\ntitle = \"X\"\ninherits = \"x\"\n"]).unwrap_err();
        assert_eq!(ring.to_string(), "theme 'x': it inherits in a ring");
        assert!(themes.get("nosuch", C16).unwrap_err().to_string().contains("there are dark, light"));
    }
    const C16: ColorChoice = ColorChoice::Ansi16;
}
