//! A name for this process, and whether a process of such a name has ended: so that what a killed process held need not
//! be waited for.

use std::fs;

/// This process, by the boot of its machine, its space of process numbers, its number and the tick that it began at; no
/// other process ever has the same. `None` where the system does not tell.
pub fn name() -> Option<String> {
    let (boot, space) = here()?;
    let pid = std::process::id();
    Some(format!("{boot}/{space}/{pid}/{}", began(pid)?))
}

/// Whether the process of this name is known to have ended. A process of another machine, of another boot or in another
/// space of process numbers is not known here, and so has not.
pub fn has_ended(name: &str) -> bool {
    let mut parts = name.split('/');
    let (Some(boot), Some(space), Some(pid), Some(tick), None) =
        (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let Ok(pid) = pid.parse::<u32>() else { return false };
    let Some((own_boot, own_space)) = here() else { return false };
    boot == own_boot && space == own_space && began(pid).is_none_or(|now| now != tick)
}

fn here() -> Option<(String, String)> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let space = fs::read_link("/proc/self/ns/pid").ok()?;
    let word = |text: &str| text.trim().chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect::<String>();
    let (boot, space) = (word(&boot), word(&space.to_string_lossy()));
    (!boot.is_empty() && !space.is_empty()).then_some((boot, space))
}

/// The tick since boot at which a process began; `None` where there is no such process.
fn began(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything; fields are counted behind it. The state is the first, the start the 20th.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    // A zombie has ended, whoever still waits for it.
    if fields.first().is_some_and(|state| matches!(*state, "Z" | "X")) {
        return None;
    }
    fields.get(19).map(|tick| (*tick).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e8_a_process_that_has_ended_is_told_from_one_that_lives_and_one_that_is_not_known() {
        let own = name().expect("the system tells");
        assert!(!has_ended(&own), "we live");
        let mut child = std::process::Command::new("sleep").arg("600").spawn().expect("it starts");
        let (boot, space) = here().expect("the system tells");
        let theirs = format!("{boot}/{space}/{}/{}", child.id(), began(child.id()).expect("it lives"));
        assert!(!has_ended(&theirs));
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert!(has_ended(&theirs));
        // The same number, begun at another time, is another process.
        let mut parts: Vec<&str> = own.split('/').collect();
        parts[3] = "1";
        assert!(has_ended(&parts.join("/")));
        for unknown in ["", "x", "a/b/c/d", "another-boot/pid4026531836/1/1", "0193f0a0-0000-7000-8000-000000000001"] {
            assert!(!has_ended(unknown), "{unknown}");
        }
    }
}
