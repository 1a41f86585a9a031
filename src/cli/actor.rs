//! Who acts: the operating system's user, on which machine, from where.

use crate::domain::Actor;

/// The person or script at this terminal; `via` is `cli`, `cockpit` or `controller`.
pub fn current(via: &str) -> Actor {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::current())
        .ok()
        .flatten()
        .map_or_else(|| format!("uid-{}", nix::unistd::Uid::current()), |user| user.name);
    let host = nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown-host".to_owned());
    // `SSH_CONNECTION` is "client port server port"; on a shared bastion the client tells people apart.
    let client = std::env::var("SSH_CONNECTION").ok().and_then(|c| c.split(' ').next().map(str::to_owned));
    let host = match client.filter(|c| !c.is_empty()) {
        Some(client) => format!("{host} from {client}"),
        None => host,
    };
    Actor { user, via: via.to_owned(), host }
}
