//! From keys to actions. Bindings come from the registry and may be replaced in the configuration; what contradicts
//! itself, or would put an acting action on a key that hands press by accident, is told at start.

use std::collections::BTreeMap;
use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::action::{Action, Context, Danger, REGISTRY};

/// A key with what is held down beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd)]
pub struct Key {
    code: KeyCode,
    modifiers: KeyModifiers,
}

impl Key {
    /// As the terminal reports it. Shift is not kept for characters: the character tells it.
    pub fn from_event(event: &KeyEvent) -> Self {
        let mut modifiers = event.modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        if matches!(event.code, KeyCode::Char(_) | KeyCode::BackTab) {
            modifiers.remove(KeyModifiers::SHIFT);
        }
        let code = match event.code {
            KeyCode::Char(c) if modifiers.contains(KeyModifiers::CONTROL) => KeyCode::Char(c.to_ascii_lowercase()),
            code => code,
        };
        Self { code, modifiers }
    }

    /// The character, where it is one that would be typed into a text.
    pub(crate) fn typed(self) -> Option<char> {
        match self.code {
            KeyCode::Char(c) if self.modifiers.is_empty() && !c.is_control() => Some(c),
            _ => None,
        }
    }

    /// From its text: `q`, `G`, `ctrl-z`, `alt-x`, `enter`, `esc`, `tab`, `backtab`, `space`, `pgup`, `f1`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = text;
        loop {
            if let Some(r) = rest.strip_prefix("ctrl-").filter(|r| !r.is_empty()) {
                modifiers |= KeyModifiers::CONTROL;
                rest = r;
            } else if let Some(r) = rest.strip_prefix("alt-").filter(|r| !r.is_empty()) {
                modifiers |= KeyModifiers::ALT;
                rest = r;
            } else {
                break;
            }
        }
        let code = match rest {
            "enter" => KeyCode::Enter,
            "esc" => KeyCode::Esc,
            "tab" => KeyCode::Tab,
            "backtab" => KeyCode::BackTab,
            "space" => KeyCode::Char(' '),
            "backspace" => KeyCode::Backspace,
            "delete" => KeyCode::Delete,
            "insert" => KeyCode::Insert,
            "up" => KeyCode::Up,
            "down" => KeyCode::Down,
            "left" => KeyCode::Left,
            "right" => KeyCode::Right,
            "home" => KeyCode::Home,
            "end" => KeyCode::End,
            "pgup" => KeyCode::PageUp,
            "pgdn" => KeyCode::PageDown,
            _ => {
                let mut chars = rest.chars();
                match (chars.next(), chars.next()) {
                    (Some(c), None) if !c.is_control() => KeyCode::Char(c),
                    (Some('f'), Some(_)) => KeyCode::F(rest.get(1..)?.parse().ok().filter(|n| (1..=12).contains(n))?),
                    _ => return None,
                }
            }
        };
        Some(Self { code, modifiers })
    }

    /// Keys that hands press by habit or accident; nothing that acts may lie on one.
    fn is_accident_prone(self) -> bool {
        self.modifiers.contains(KeyModifiers::CONTROL)
            || !matches!(self.code, KeyCode::Char(c) if c != ' ') && !matches!(self.code, KeyCode::F(_))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.modifiers.contains(KeyModifiers::CONTROL) {
            f.write_str("Ctrl-")?;
        }
        if self.modifiers.contains(KeyModifiers::ALT) {
            f.write_str("Alt-")?;
        }
        match self.code {
            KeyCode::Char(' ') => f.write_str("Space"),
            KeyCode::Char(c) if self.modifiers.contains(KeyModifiers::CONTROL) => {
                write!(f, "{}", c.to_ascii_uppercase())
            }
            KeyCode::Char(c) => write!(f, "{c}"),
            KeyCode::F(n) => write!(f, "F{n}"),
            KeyCode::PageUp => f.write_str("PgUp"),
            KeyCode::PageDown => f.write_str("PgDn"),
            KeyCode::BackTab => f.write_str("Shift-Tab"),
            other => write!(f, "{other:?}"),
        }
    }
}

/// What is wrong with a configured key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeymapError {
    /// No such action.
    #[error("keys: there is no action '{name}'{hint}")]
    UnknownAction {
        /// As written.
        name: String,
        /// The nearest one that there is.
        hint: String,
    },
    /// No such key.
    #[error("keys.{action}: '{key}' is not a key, such as q, G, ctrl-z, enter, pgup, f1")]
    UnknownKey {
        /// For which action.
        action: &'static str,
        /// As written.
        key: String,
    },
    /// Two actions on one key in one place.
    #[error("keys: '{key}' means both '{first}' and '{second}' ({context})")]
    Conflict {
        /// The key.
        key: String,
        /// The one.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// Where.
        context: &'static str,
    },
    /// An acting action on a key that is pressed by accident.
    #[error("keys.{action}: '{key}' is pressed too easily for an action that acts; take a letter")]
    Dangerous {
        /// For which action.
        action: &'static str,
        /// As written.
        key: String,
    },
    /// No way out.
    #[error("keys.{action}: needs a key, or there is no way back")]
    Needed {
        /// Which.
        action: &'static str,
    },
}

/// What a sequence of keys means somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// This.
    Action(Action),
    /// Nothing yet: more keys may follow.
    Prefix,
    /// Nothing.
    Nothing,
}

/// The bindings of a session.
#[derive(Debug, Clone)]
pub struct Keymap {
    bindings: Vec<(Context, Vec<Key>, Action)>,
}

impl Default for Keymap {
    fn default() -> Self {
        Self::with(&BTreeMap::new()).unwrap_or_else(|_| Self { bindings: Vec::new() })
    }
}

impl Keymap {
    /// The registry's bindings, those of the named actions replaced. All that is wrong is told at once.
    pub fn with(configured: &BTreeMap<String, Vec<String>>) -> Result<Self, Vec<KeymapError>> {
        let mut errors = Vec::new();
        for name in configured.keys() {
            if Action::by_name(name).is_none() {
                let near = REGISTRY
                    .iter()
                    .map(|s| (strsim::damerau_levenshtein(s.name, name), s.name))
                    .min()
                    .filter(|(distance, _)| *distance <= 3);
                let hint = near.map_or_else(String::new, |(_, n)| format!("; did you mean '{n}'?"));
                errors.push(KeymapError::UnknownAction { name: name.clone(), hint });
            }
        }
        let mut bindings: Vec<(Context, Vec<Key>, Action)> = Vec::new();
        for spec in REGISTRY {
            let default: Vec<String> = spec.keys.iter().map(|k| (*k).to_owned()).collect();
            let written = configured.get(spec.name).unwrap_or(&default);
            if written.is_empty()
                && matches!(spec.action, Action::Back | Action::Interrupt | Action::Submit | Action::Press)
            {
                errors.push(KeymapError::Needed { action: spec.name });
            }
            for text in written {
                let keys: Option<Vec<Key>> = text.split(' ').map(Key::parse).collect();
                let Some(keys) = keys.filter(|k| !k.is_empty()) else {
                    errors.push(KeymapError::UnknownKey { action: spec.name, key: text.clone() });
                    continue;
                };
                if spec.danger > Danger::None && keys.iter().any(|k| k.is_accident_prone()) {
                    errors.push(KeymapError::Dangerous { action: spec.name, key: text.clone() });
                    continue;
                }
                for context in spec.contexts {
                    if let Some((_, _, other)) = bindings.iter().find(|(c, k, a)| {
                        c == context && *a != spec.action && (k.starts_with(&keys) || keys.starts_with(k))
                    }) {
                        errors.push(KeymapError::Conflict {
                            key: text.clone(),
                            first: other.spec().name,
                            second: spec.name,
                            context: context.title(),
                        });
                    }
                    bindings.push((*context, keys.clone(), spec.action));
                }
            }
        }
        if errors.is_empty() { Ok(Self { bindings }) } else { Err(errors) }
    }

    /// What these keys mean where one is; `contexts` from the nearest to the widest.
    pub fn look_up(&self, contexts: &[Context], keys: &[Key]) -> Lookup {
        let mut prefix = false;
        for context in contexts {
            for (c, bound, action) in &self.bindings {
                if c == context && bound == keys {
                    return Lookup::Action(*action);
                }
                prefix |= c == context && bound.len() > keys.len() && bound.starts_with(keys);
            }
        }
        if prefix { Lookup::Prefix } else { Lookup::Nothing }
    }

    /// The keys of an action, for help and hints.
    pub fn keys_of(&self, action: Action) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for (_, keys, a) in &self.bindings {
            if *a == action {
                let text = keys.iter().map(Key::to_string).collect::<Vec<_>>().join(" ");
                if !out.contains(&text) {
                    out.push(text);
                }
            }
        }
        out
    }

    /// The first key of an action, or nothing.
    pub fn first_key(&self, action: Action) -> String {
        self.keys_of(action).into_iter().next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &[&str])]) -> Result<Keymap, Vec<KeymapError>> {
        Keymap::with(
            &pairs.iter().map(|(a, k)| ((*a).to_owned(), k.iter().map(|k| (*k).to_owned()).collect())).collect(),
        )
    }

    #[test]
    fn the_registrys_own_keys_do_not_contradict_each_other() {
        assert!(with(&[]).is_ok(), "{:?}", with(&[]).err());
    }

    #[test]
    fn op2_nothing_that_acts_lies_on_a_control_key_backspace_delete_enter_or_space() {
        for key in ["ctrl-d", "ctrl-k", "backspace", "delete", "enter", "esc", "tab", "space", "up"] {
            let error = with(&[("terminate", &[key])]).unwrap_err();
            assert!(matches!(error.first(), Some(KeymapError::Dangerous { .. })), "{key}: {error:?}");
        }
        let keymap = Keymap::default();
        for (_, keys, action) in &keymap.bindings {
            assert!(!action.acts() || keys.iter().all(|k| !k.is_accident_prone()), "{action:?}");
        }
    }

    #[test]
    fn op4_no_shifted_letter_is_more_dangerous_than_the_plain_one() {
        let keymap = Keymap::default();
        let danger = |key: &str| match keymap.look_up(&[Context::Main], &[Key::parse(key).unwrap()]) {
            Lookup::Action(a) => a.spec().danger,
            _ => Danger::None,
        };
        for c in 'a'..='z' {
            assert!(danger(&c.to_ascii_uppercase().to_string()) <= danger(&c.to_string()), "{c}");
        }
    }

    #[test]
    fn conflicts_and_misspellings_are_all_told_at_once() {
        let errors = with(&[("zoom", &["q"]), ("quitt", &["x"]), ("sort", &["ctrlz"]), ("back", &[])]).unwrap_err();
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert!(texts.iter().any(|t| t == "keys: there is no action 'quitt'; did you mean 'quit'?"), "{texts:?}");
        assert!(texts.iter().any(|t| t.contains("'q' means both 'zoom' and 'quit' (Everywhere)")), "{texts:?}");
        assert!(texts.iter().any(|t| t.contains("'ctrlz' is not a key")), "{texts:?}");
        assert!(texts.iter().any(|t| t.starts_with("keys.back: needs a key")), "{texts:?}");
    }

    #[test]
    fn keys_after_one_another_wait_for_the_rest() {
        let keymap = with(&[("top", &["g g"])]).unwrap();
        let g = Key::parse("g").unwrap();
        assert_eq!(keymap.look_up(&[Context::Main], &[g]), Lookup::Prefix);
        assert_eq!(keymap.look_up(&[Context::Main], &[g, g]), Lookup::Action(Action::Top));
        assert_eq!(keymap.look_up(&[Context::Main], &[g, Key::parse("x").unwrap()]), Lookup::Nothing);
        assert_eq!(keymap.keys_of(Action::Top), ["g g"]);
    }

    #[test]
    fn the_nearest_context_wins() {
        let keymap = Keymap::default();
        let l = [Key::parse("l").unwrap()];
        assert_eq!(keymap.look_up(&[Context::Latency, Context::Main], &l), Lookup::Action(Action::RightInMatrix));
        assert_eq!(keymap.look_up(&[Context::Capacity, Context::Main], &l), Lookup::Action(Action::Launch));
    }

    #[test]
    fn every_name_of_a_key_is_read_and_shown() {
        for (text, shown) in [
            ("q", "q"),
            ("G", "G"),
            ("ctrl-z", "Ctrl-Z"),
            ("alt-x", "Alt-x"),
            ("space", "Space"),
            ("-", "-"),
            ("pgup", "PgUp"),
            ("f12", "F12"),
            ("backtab", "Shift-Tab"),
            ("enter", "Enter"),
            ("ctrl--", "Ctrl--"),
        ] {
            assert_eq!(Key::parse(text).map(|k| k.to_string()).as_deref(), Some(shown));
        }
        for wrong in ["", "ctrl-", "f13", "f0", "hyper-x", "ab"] {
            assert_eq!(Key::parse(wrong), None, "{wrong}");
        }
    }
}
