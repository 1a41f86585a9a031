//! `gpudeck completions`, `gpudeck man`: made from the very arguments that are parsed.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::args::Cli;
use crate::cli::failure::{Exit, Outcome};
use crate::cli::output::Output;

/// `completions`
pub fn completions(out: &Output, shell: Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "gpudeck", &mut script);
    out.text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// `man`: the page of the program, then those of its commands.
pub fn man(out: &Output) -> Outcome {
    let mut command = Cli::command();
    command.build();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    for sub in command.get_subcommands().filter(|c| c.get_name() != "help") {
        clap_mangen::Man::new(sub.clone()).render(&mut page)?;
        for below in sub.get_subcommands().filter(|c| c.get_name() != "help") {
            clap_mangen::Man::new(below.clone()).render(&mut page)?;
        }
    }
    out.text(&String::from_utf8_lossy(&page))?;
    Ok(Exit::Done)
}
