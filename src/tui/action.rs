//! The one registry of what a key can do. Keymap, help, command line, footer hints and documentation all come from here;
//! no other file knows a key.

/// Where a binding holds. The first context of the place where one is that knows the key wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Context {
    /// Any pane.
    Main,
    /// The capacity pane.
    Capacity,
    /// The prices pane.
    Prices,
    /// The latency matrix, which has a cursor in both directions.
    Latency,
    /// The jobs pane.
    Jobs,
    /// The events pane.
    Events,
    /// Something to read: help, details, refusals, logs.
    Reader,
    /// A plan being looked at.
    Plan,
    /// A confirmation.
    Confirm,
    /// The launch form.
    Form,
    /// Wherever characters are text: filter, command line, form and confirmation fields.
    Text,
}

impl Context {
    /// Its heading in the help.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Main => "Everywhere",
            Self::Capacity => "Capacity",
            Self::Prices => "Prices",
            Self::Latency => "Latency",
            Self::Jobs => "Jobs",
            Self::Events => "Events",
            Self::Reader => "Reading (help, details, refusals, log)",
            Self::Plan => "Looking at a plan",
            Self::Confirm => "Confirming",
            Self::Form => "Launch form",
            Self::Text => "Typing (filter, command line, fields)",
        }
    }
}

/// What an action can do to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Danger {
    /// Changes what is shown, nothing else.
    None,
    /// Leads to something that is written down or costs money, through a dialog. Not there in a read-only session.
    Acts,
    /// Leads to something that stops or moves what runs, through a dialog with a typed name.
    Destroys,
}

macro_rules! actions {
    ($($variant:ident, $name:literal, $title:literal, $help:literal, [$($context:ident),+], $danger:ident, [$($key:literal),*];)+) => {
        /// All that a key can mean.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "the registry below states name, title and help of each")]
        pub enum Action { $($variant),+ }

        /// Every action, in the order of the help.
        pub static REGISTRY: &[Spec] = &[$(Spec {
            action: Action::$variant, name: $name, title: $title, help: $help,
            contexts: &[$(Context::$context),+], danger: Danger::$danger, keys: &[$($key),*],
        }),+];
    };
}

/// An action as registered.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Which.
    pub action: Action,
    /// Its name in the configuration and on the command line.
    pub name: &'static str,
    /// Two or three words.
    pub title: &'static str,
    /// A sentence.
    pub help: &'static str,
    /// Where it can be done.
    pub contexts: &'static [Context],
    /// What it can do to the world.
    pub danger: Danger,
    /// Its keys unless configured otherwise; keys after one another are written with a blank between them.
    pub keys: &'static [&'static str],
}

actions! {
    FocusCapacity, "capacity", "Capacity", "Go to the capacity pane: where GPUs can be had.", [Main], None, ["1"];
    FocusPrices, "prices", "Prices", "Go to the prices pane: cheapest, median, dearest per GPU type.", [Main], None, ["2"];
    FocusLatency, "latency", "Latency", "Go to the latency matrix.", [Main], None, ["3"];
    FocusJobs, "jobs", "Jobs", "Go to the jobs pane: what runs, and what it costs.", [Main], None, ["4"];
    FocusEvents, "events", "Events", "Open the events: what happened, who did it, under which plan.", [Main], None, ["e"];
    NextPane, "next-pane", "Next pane", "Go to the next pane.", [Main], None, ["tab"];
    PreviousPane, "previous-pane", "Previous pane", "Go to the pane before.", [Main], None, ["backtab"];
    Zoom, "zoom", "Zoom", "Give the whole screen to the pane, and back.", [Main], None, ["z"];
    Up, "up", "Up", "One row up.", [Main, Reader, Plan, Form], None, ["up", "k"];
    Down, "down", "Down", "One row down.", [Main, Reader, Plan, Form], None, ["down", "j"];
    Left, "left", "Left", "One column to the left.", [Main], None, ["left", "h"];
    Right, "right", "Right", "One column to the right.", [Main], None, ["right"];
    RightInMatrix, "right-in-matrix", "Right", "One column to the right (in the matrix nothing can be launched, so `l` moves).", [Latency], None, ["l"];
    PageUp, "page-up", "Page up", "One page up.", [Main, Reader, Plan], None, ["pgup", "ctrl-b", "ctrl-u"];
    PageDown, "page-down", "Page down", "One page down.", [Main, Reader, Plan], None, ["pgdn", "ctrl-f", "ctrl-d"];
    Top, "top", "Top", "To the first row.", [Main, Reader], None, ["g", "home"];
    Bottom, "bottom", "Bottom", "To the last row.", [Main, Reader], None, ["G", "end"];
    Details, "details", "Details", "All that is known of the row.", [Main], None, ["enter", "d"];
    Filter, "filter", "Filter", "Show only rows that match: words, or gpu:h100 price<4 spot !region:us-*.", [Main], None, ["/"];
    Sort, "sort", "Sort", "Sort by the next column.", [Main], None, ["s"];
    ReverseSort, "reverse", "Reverse", "Turn the order round.", [Main], None, ["S"];
    Pivot, "pivot", "Heat map", "Capacity as rows, or as a map of GPU by region.", [Capacity], None, ["v"];
    Times, "times", "Times", "Times in UTC, in your zone, or as ages.", [Main], None, ["u"];
    Command, "command", "Command line", "Type a command; Tab completes.", [Main], None, [":"];
    Help, "help", "Help", "The keys of where you are.", [Main, Plan], None, ["?", "f1"];
    Launch, "launch", "Launch", "Fill in a job, see its plan, confirm, launch.", [Main], Acts, ["l"];
    Migrate, "migrate", "Migrate", "Plan a move of the job, confirm by its name, move.", [Main], Destroys, ["m"];
    Terminate, "terminate", "Terminate", "Show what will stop and what is lost, confirm by the job's name, terminate.", [Main], Destroys, ["t"];
    DryRun, "plan", "Plan", "The plan for what is selected, without doing anything.", [Main], None, ["p"];
    Explain, "explain", "Why not?", "Why places were refused, and what would help.", [Main, Plan], None, ["x"];
    Logs, "logs", "Log", "What was done for the job and what was seen of it, line by line.", [Main], None, ["L"];
    Acknowledge, "acknowledge", "Acknowledge", "Take note of an alert, with your name and a remark.", [Main], Acts, ["a"];
    Copy, "copy", "Copy", "Copy the row's id to the clipboard (OSC 52).", [Main, Reader], None, ["y"];
    Refresh, "refresh", "Refresh", "Ask every provider now.", [Main], None, ["r"];
    Theme, "theme", "Theme", "The next theme.", [Main], None, ["T"];
    Redraw, "redraw", "Redraw", "Paint the whole screen anew.", [Main], None, ["ctrl-l"];
    Suspend, "suspend", "Suspend", "Back to the shell; `fg` returns.", [Main], None, ["ctrl-z"];
    Quit, "quit", "Quit", "Leave gpudeck; what runs goes on.", [Main], None, ["q"];
    Interrupt, "interrupt", "Quit at once", "Leave gpudeck without a question; what runs goes on.", [Main, Reader, Plan, Confirm, Form, Text], None, ["ctrl-c"];
    Back, "back", "Back", "One step back: close, clear the filter, leave the zoom.", [Main, Reader, Plan, Confirm, Form, Text], None, ["esc"];
    Close, "close", "Close", "Close what is open.", [Reader, Plan], None, ["q"];
    Next, "next-field", "Next field", "To the next field or button.", [Plan, Confirm, Form], None, ["tab"];
    Previous, "previous-field", "Previous field", "To the field or button before.", [Plan, Confirm, Form], None, ["backtab"];
    NextButton, "next-button", "Next button", "To the next button.", [Plan], None, ["right"];
    PreviousButton, "previous-button", "Previous button", "To the button before.", [Plan], None, ["left"];
    Replan, "plan-again", "Plan again", "Make the plan anew from what is known now.", [Plan], None, ["r"];
    Press, "press", "Press", "Press the button that has the focus.", [Plan, Confirm, Form], None, ["enter"];
    Submit, "submit", "Accept", "Take what is typed.", [Text], None, ["enter"];
    Complete, "complete", "Complete", "Complete what is typed.", [Text], None, ["tab"];
    Earlier, "earlier", "Earlier", "What was typed before.", [Text], None, ["up"];
    Later, "later", "Later", "What was typed after that.", [Text], None, ["down"];
    EditLeft, "edit-left", "Cursor left", "One character to the left.", [Text], None, ["left", "ctrl-b"];
    EditRight, "edit-right", "Cursor right", "One character to the right.", [Text], None, ["right", "ctrl-f"];
    EditStart, "edit-start", "Cursor to start", "To the start of the text.", [Text], None, ["home", "ctrl-a"];
    EditEnd, "edit-end", "Cursor to end", "To the end of the text.", [Text], None, ["end", "ctrl-e"];
    EditBackspace, "edit-backspace", "Delete before", "Delete the character before the cursor.", [Text], None, ["backspace", "ctrl-h"];
    EditDelete, "edit-delete", "Delete after", "Delete the character under the cursor.", [Text], None, ["delete", "ctrl-d"];
    EditWord, "edit-word", "Delete word", "Delete the word before the cursor.", [Text], None, ["ctrl-w"];
    EditClear, "edit-clear", "Delete all", "Delete all before the cursor.", [Text], None, ["ctrl-u"];
}

impl Action {
    /// What is registered of it.
    pub fn spec(self) -> &'static Spec {
        // The registry is made from the same list as the enum, in its order.
        &REGISTRY[self as usize]
    }

    /// Whether a read-only session lacks it.
    pub fn acts(self) -> bool {
        self.spec().danger > Danger::None
    }

    /// By its name.
    pub fn by_name(name: &str) -> Option<Self> {
        REGISTRY.iter().find(|s| s.name == name).map(|s| s.action)
    }
}

/// The actions of a session: all, or those that do not act.
pub fn available(read_only: bool) -> impl Iterator<Item = &'static Spec> {
    REGISTRY.iter().filter(move |s| !read_only || s.danger == Danger::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_is_in_the_order_of_the_enum_and_its_names_are_unique() {
        for (i, spec) in REGISTRY.iter().enumerate() {
            assert_eq!(spec.action as usize, i);
            assert_eq!(Action::by_name(spec.name), Some(spec.action), "{}", spec.name);
            assert!(spec.help.ends_with('.'), "{}", spec.name);
        }
    }

    #[test]
    fn op9_read_only_has_no_acting_action() {
        let names: Vec<_> = REGISTRY.iter().filter(|s| s.danger > Danger::None).map(|s| s.name).collect();
        assert_eq!(names, ["launch", "migrate", "terminate", "acknowledge"]);
        assert!(available(true).all(|s| !names.contains(&s.name)));
        assert_eq!(available(false).count(), REGISTRY.len());
    }
}
