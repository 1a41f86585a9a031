//! All intervals, ages and limits in one place, each with the reason for its number.

use std::time::Duration;

// ── placement ────────────────────────────────────────────────────────────────────────────────────────────────────

/// Seconds from asking for an instance until a job runs on it, where nothing better is known: boot, driver and a
/// container of some GB. Spot replay studies charge 0.1 to 0.2 h for a start; this is the lower end of that.
pub const PLACEMENT_START_UP_SECONDS: u64 = 360;

/// Interruptions of one spot instance a day that costs are compared with where an offer has no evidence of its own:
/// the middle band (10–15 % a month) of AWS's spot advisor as a constant hazard, `-ln(1 - 0.125) / 30`. It is never
/// shown as the offer's own figure.
pub const PLACEMENT_SPOT_PRIOR_PER_DAY: f64 = 0.004_451;

/// Micro-USD for moving a GiB where no tariff is known for the pair: the dearest list price among the inter-region
/// tariffs published with Skyplane (NSDI 2023), 0.19 USD per GB, so that an unknown tariff never makes a place cheap.
pub const PLACEMENT_UNKNOWN_EGRESS_MICROS_PER_GIB: i64 = 204_011;

/// Gbit/s for moving data where nothing is published for the pair: the tenth percentile (nine pairs in ten are
/// faster) of the throughputs between regions published with Skyplane (NSDI 2023).
pub const PLACEMENT_UNKNOWN_GBIT_PER_SECOND: f64 = 2.689;

/// World: how long all machines of a migration's target must be seen running before the source is let go of: a machine
/// is "running" a minute or two before its start script is, and one that falls over at once does so within it.
pub const MIGRATION_SOAK: Duration = Duration::from_mins(2);

// ── engine ───────────────────────────────────────────────────────────────────────────────────────────────────────

/// Intervals and limits of feeds, operations and recovery.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineLimits {
    /// World: between two questions for a provider's offers. Spot prices move within minutes, interfaces allow more.
    pub feed_every: Duration,
    /// Real: longest wait for a provider's offers. Large clouds page through twenty regions.
    pub feed_deadline: Duration,
    /// World: longest back-off of a feed that fails.
    pub feed_backoff_max: Duration,
    /// World: between two looks at the machines that jobs hold. A spot notice is 30 s to 2 min long.
    pub watch_every: Duration,
    /// World: between two comparisons of clouds and ledger (Karpenter: 2 min).
    pub reconcile_every: Duration,
    /// Real: longest wait for a call on one machine, before its outcome counts as unknown.
    pub call_deadline: Duration,
    /// World: between two looks at a machine that boots or goes.
    pub poll_every: Duration,
    /// World: see [`MIGRATION_SOAK`].
    pub soak: Duration,
    /// World: a machine that is not up by then is given back (Karpenter registration: 15 min).
    pub boot_deadline: Duration,
    /// World: between two looks for a machine whose launch was not answered.
    pub look_every: Duration,
    /// World: how long to look before it counts as not found; three times the longest list lag seen (60 s).
    pub look_for: Duration,
    /// World: between the two reads that prove that a machine is gone; longest list lag seen.
    pub absent_apart: Duration,
    /// World: a machine younger than that is never gone because a read misses it: new ones are listed late, three times
    /// the longest lag seen is allowed for.
    pub absent_min_age: Duration,
    /// How often the same token is sent again before looking only.
    pub resend_max: u32,
    /// World: a token is not sent again later than this after it was first sent. Providers remember tokens for a limited
    /// time only (GCP promises nothing beyond an hour); later a look alone decides.
    pub resend_within: Duration,
    /// Attempts of one launch or migration that failed otherwise than by want of stock or quota. Those are bounded by the
    /// places there are: each is asked once.
    pub attempts_max: u32,
    /// Attempts of one recovery that the ledger keeps: a recovery goes on for ever, its record must not. A day of tries.
    pub attempts_kept: u32,
    /// World: first and longest wait between tries (of terminate, of recovery).
    pub backoff_first: Duration,
    /// World: the longest.
    pub backoff_max: Duration,
    /// World: after these a terminate that is not proved raises an alert (again).
    pub terminate_alerts: [Duration; 3],
    /// World: how long a place that was out of stock is left alone (Karpenter on AWS: 3 min).
    pub cool_capacity: Duration,
    /// World: how long one that refused by quota is left alone (Karpenter on Azure: 10 min).
    pub cool_quota: Duration,
    /// World: how long one that failed otherwise is left alone.
    pub cool_fault: Duration,
    /// World: how long a place that preempted us is left alone.
    pub cool_preempted: Duration,
    /// Real: a lease; three times the longest call, so that a slow call does not lose it.
    pub lease: Duration,
    /// Real: between two looks at the ledger for what another process does.
    pub follow_every: Duration,
    /// By how much the price may exceed the confirmed one, in percent, where the job sets no price limit of its own.
    /// Spot prices move between the look and the press; what is bound is never above it. The plan says so.
    pub headroom_percent: u32,
    /// Events kept in the published state; the screen's pane shows no more. The ledger keeps all.
    pub events_shown: u32,
    /// World: what the best place would cost is computed at most so often.
    pub best_every: Duration,
    /// Jobs for which it is computed in one go, so that ten thousand jobs do not stall the state.
    pub best_batch: usize,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self {
            feed_every: Duration::from_mins(1),
            feed_deadline: Duration::from_mins(1),
            feed_backoff_max: Duration::from_mins(10),
            watch_every: Duration::from_secs(10),
            reconcile_every: Duration::from_mins(2),
            call_deadline: Duration::from_secs(40),
            poll_every: Duration::from_secs(5),
            soak: MIGRATION_SOAK,
            boot_deadline: Duration::from_mins(15),
            look_every: Duration::from_secs(10),
            look_for: Duration::from_mins(3),
            absent_apart: Duration::from_mins(1),
            absent_min_age: Duration::from_mins(3),
            resend_max: 5,
            resend_within: Duration::from_mins(30),
            attempts_max: 8,
            attempts_kept: 300,
            backoff_first: Duration::from_secs(5),
            backoff_max: Duration::from_mins(5),
            terminate_alerts: [Duration::from_mins(5), Duration::from_mins(15), Duration::from_hours(1)],
            cool_capacity: Duration::from_mins(3),
            cool_quota: Duration::from_mins(10),
            cool_fault: Duration::from_mins(5),
            cool_preempted: Duration::from_mins(5),
            lease: Duration::from_mins(2),
            follow_every: Duration::from_millis(500),
            headroom_percent: 25,
            events_shown: 500,
            best_every: Duration::from_secs(15),
            best_batch: 50,
        }
    }
}

// ── Files that people write ─────────────────────────────────────────────────────────────────────────────────────────

/// Largest job or configuration file that is read. A real one has a few kilobytes; beyond this it is a wrong file.
pub const WRITTEN_FILE_BYTES: u64 = 1 << 20;
/// Largest file of offers that is read: 100,000 rows of half a kilobyte, with room for as much again.
pub const OFFERS_FILE_BYTES: u64 = 100 << 20;
/// Most findings told about one file; after so many the reader has understood that it is the wrong file.
pub const PROBLEMS_TOLD: usize = 50;
/// Longest name of a job: as long as a DNS label, so that clouds can carry it in a machine's name or tag.
pub const JOB_NAME_CHARS: usize = 63;
/// Longest command line or value of a variable: what Linux takes as one argument.
pub const RUN_BYTES: usize = 128 * 1024;
/// Most GPUs asked for on one node: the largest rack-scale domains of today have 72; ten times that is a typing error.
pub const GPUS_A_NODE: u64 = 1_024;
/// Most nodes of one gang: the largest public training clusters have some ten thousand machines.
pub const NODES_A_JOB: u64 = 16_384;
/// Most virtual CPUs asked for on a node: twice the largest machine that is rented (about 1,900).
pub const VCPUS_A_NODE: u64 = 4_096;
/// Most main memory asked for on a node in GiB: the largest machine that is rented has 32 TiB.
pub const MEMORY_A_NODE_GIB: f64 = 65_536.0;
/// Most memory asked for on one GPU in GiB: five times the largest of today (about 290).
pub const MEMORY_A_GPU_GIB: f64 = 1_536.0;
/// Longest run in hours: ten years.
pub const DURATION_HOURS: f64 = 87_660.0;
/// Most data to move in GiB: an exbibyte would take a century over the fastest links known here.
pub const DATA_GIB: f64 = 1_048_576_000.0;
/// Dearest price limit of a GPU-hour in USD that makes sense: two hundred times the dearest public price.
pub const GPU_HOUR_USD: f64 = 10_000.0;
/// Longest round trip worth naming in milliseconds: a satellite link and back twice.
pub const LATENCY_MS: f64 = 10_000.0;
/// Work lost at an interruption where the job does not say: ten minutes to boot and pull an image, and half of the
/// usual half hour between checkpoints.
pub const RESTART_LOSS_HOURS: f64 = 0.42;

// ── Command line ────────────────────────────────────────────────────────────────────────────────────────────────────

/// Longest that a one-shot command waits for all providers to answer: their own time-outs (below) are shorter; this is
/// the fence behind them, and what has answered by then is shown.
pub const ONE_SHOT_REFRESH: Duration = Duration::from_mins(1);
/// How long a finished command waits for writers in the background before the process ends.
pub const SHUTDOWN: Duration = Duration::from_millis(500);
/// Days of log files kept: an incident is looked into within a fortnight.
pub const LOG_DAYS: usize = 14;
/// Between two looks of `--watch` and `--follow` at what other processes have written.
pub const FOLLOW: Duration = Duration::from_secs(1);
/// Between two questions to the providers while `jobs --watch` runs: as often as a feed asks.
pub const WATCH_REFRESH: Duration = Duration::from_mins(1);

// ── Feeds ────────────────────────────────────────────────────────────────────────────────────────────────────────

/// How often a provider is asked for its offers unless its adapter or the configuration says otherwise. Spot prices
/// move within minutes, and one listing a minute stays far below every provider's read quota.
pub const POLL_INTERVAL: Duration = Duration::from_mins(1);

/// An offer is stale past so many poll intervals. Two: one missed poll is a hiccup, two are a fact.
pub const STALE_AFTER_POLLS: u32 = 2;

/// A stale figure is no longer shown as a figure past this age. Operators act within minutes; a price of ten minutes
/// ago under an unanswering feed is a guess.
pub const FIGURES_EXPIRE_AFTER: Duration = Duration::from_mins(10);

/// A price from a provider's own list is stale past this age: three of the hours that such a list is kept for.
pub const LIST_PRICE_MAX_AGE: Duration = Duration::from_hours(3);

/// A row that only a published table vouches for is stale past this age. List prices change a few times a year, so a
/// table of the last quarter is worth acting on and an older one is not.
pub const PUBLISHED_MAX_AGE: Duration = Duration::from_hours(90 * 24);

/// A published figure is no longer shown as a figure past this age: after a year nearly every list price has moved.
pub const PUBLISHED_EXPIRES_AFTER: Duration = Duration::from_hours(365 * 24);

/// The first answer of a feed is awaited for so long; then the feed is an error with its cause, not a spinner. Ten
/// seconds is what people wait before they believe that a screen hangs.
pub const FIRST_ANSWER_DEADLINE: Duration = Duration::from_secs(10);

/// So many polls in a row must fail before a feed that has answered counts as stale while its rows are still young.
/// One or two failures happen every hour somewhere and must not turn the screen red.
pub const FAILURES_BEFORE_STALE: u32 = 3;

/// An observation may lie so far ahead of our clock before its time is replaced by ours. NTP keeps hosts within
/// seconds; two minutes forgive a badly kept one, and more would let one wrong clock win every comparison for long.
pub const FUTURE_SKEW: Duration = Duration::from_mins(2);

/// An answer that lost more than this share of the rows known from its feed is not believed at once: real fleets
/// shrink by rows, broken filters and half pages shrink by halves.
pub const QUARANTINE_LOST_SHARE: f64 = 0.5;

/// …and only when it lost more rows than this: a pool of a dozen machines may really be rented out in a minute.
pub const QUARANTINE_LOST_ROWS: usize = 20;

/// A price that changed by more than this factor since the last answer has jumped. The largest real moves in recorded
/// spot history stay below 6; a slipped decimal or a per-GPU price taken for an instance's is 8 or more.
pub const QUARANTINE_PRICE_FACTOR: f64 = 10.0;

/// So large a share of comparable prices must have jumped, or gone to zero, for the answer to be held back.
pub const QUARANTINE_JUMPED_SHARE: f64 = 0.9;

/// …among at least so many comparable prices: one or two offers are no pattern.
pub const QUARANTINE_MIN_PRICES: usize = 5;

/// A held-back answer is believed once so many whole ones in a row say the same: three are a change, not a glitch.
pub const QUARANTINE_ACCEPT_AFTER: u32 = 3;

/// …and not before so many intervals have passed since the first of them: asking three times within a minute asks the
/// same broken cache three times.
pub const QUARANTINE_ACCEPT_POLLS: u32 = 3;

/// Two held-back answers say the same when neither their rows nor their prices in sum differ by more than this share:
/// spot prices wander by a few percent from poll to poll, what is broken differs by more.
pub const QUARANTINE_SAME_SHARE: f64 = 0.05;

// ── Market ───────────────────────────────────────────────────────────────────────────────────────────────────────

/// A refused launch says "none" for so long. Karpenter's cache of unavailable offerings on AWS holds three minutes;
/// capacity rarely returns sooner.
pub const REFUSAL_HOLDS: Duration = Duration::from_mins(3);

/// …and "limited" until then, unless the provider itself says otherwise later. An hour is the cool-down that Azure's
/// regional refusals call for, the longest of the usual ones.
pub const REFUSAL_FADES: Duration = Duration::from_hours(1);

/// A granted launch says "available" for so long: it proves that one machine could be had, not that the next can.
pub const GRANT_HOLDS: Duration = Duration::from_mins(5);

/// Launch attempts that are remembered; the oldest give way. Far more than anybody launches within an hour.
pub const ATTEMPTS_REMEMBERED: usize = 10_000;

/// Most offers that a market holds; further ones are counted, not kept. Four times the largest public catalogue, and
/// about 300 MB: a feed gone mad cannot take the machine down.
pub const OFFERS_MAX: usize = 400_000;

/// Most history points of one offer: a sparkline has some sixty cells, and a spot price moves a few dozen times a day.
pub const HISTORY_POINTS_PER_OFFER: usize = 64;

/// Fewest history points left to an offer when there are many: first, last and two turns between.
pub const HISTORY_POINTS_FLOOR: usize = 4;

/// History points of all offers together, at 32 bytes each: 16 MB at most. (With more than 125,000 offers the floor
/// above rules: 4 points an offer, 51 MB at [`OFFERS_MAX`].)
pub const HISTORY_POINTS_TOTAL: usize = 500_000;

/// Points older than this go when a new one comes; one is kept from before, so that the price back then is known.
/// A day of trend and an hour of slack.
pub const HISTORY_WINDOW: Duration = Duration::from_hours(25);

/// The trend compares with the price so long ago.
pub const TREND_WINDOW: Duration = Duration::from_hours(24);

/// Offers known for less than this give no trend: minutes of history say nothing about a day.
pub const TREND_MIN: Duration = Duration::from_hours(1);

/// Offers in one shared block of snapshots at most. A block is copied whole when one of its offers changes, and each
/// snapshot counts all blocks: with a thousand scattered changes among 100,000 offers the sum is least at about 32.
pub const SNAPSHOT_BLOCK: usize = 32;

/// Machines looked at at once where a provider tells of one at a time: a gang of a hundred within
/// [`DESCRIBE_DEADLINE`], and far below what an account may ask.
pub const LOOKS_AT_ONCE: usize = 8;

// ── Provider calls (real time) ───────────────────────────────────────────────────────────────────────────────────

/// A whole listing of offers, retries included. Below [`POLL_INTERVAL`], so that polls never pile up; seventeen
/// regions asked in parallel take some twenty seconds.
pub const OFFERINGS_DEADLINE: Duration = Duration::from_secs(45);

/// One region's part of a listing, for adapters that ask regions one by one: a region that never answers must not take
/// the others' answers with it. Well below [`OFFERINGS_DEADLINE`].
pub const REGION_DEADLINE: Duration = Duration::from_secs(20);

/// A listing of our machines in every region.
pub const INSTANCES_DEADLINE: Duration = Duration::from_secs(30);

/// A look at a few machines: one round trip, with room for two retries.
pub const DESCRIBE_DEADLINE: Duration = Duration::from_secs(15);

/// A look-up by token. As long as a listing: that is what it is on clouds without tokens.
pub const FIND_DEADLINE: Duration = Duration::from_secs(30);

/// A launch until it is accepted. Providers answer within seconds, Azure and GCP at worst within half a minute; past
/// that the outcome is unknown and is looked up. Below [`EngineLimits::call_deadline`], the fence behind it.
pub const LAUNCH_DEADLINE: Duration = Duration::from_secs(35);

/// A terminate until it is accepted. It may wait for its place in the rate limit first.
pub const TERMINATE_DEADLINE: Duration = Duration::from_secs(30);

/// A check of credentials and permissions: somebody is waiting for `doctor`.
pub const CHECK_DEADLINE: Duration = Duration::from_secs(20);

/// Longest wait for the word whose account we use: one small question, mostly answered from memory.
pub const ACCOUNT_DEADLINE: Duration = Duration::from_secs(10);

/// How often a read is sent at most. Three passes over two independent hiccups; more only adds load to an outage.
pub const READ_ATTEMPTS: u32 = 3;

/// The first pause between two reads, doubled each time, of which a random share is waited (full jitter).
pub const RETRY_BASE: Duration = Duration::from_millis(500);

/// The longest pause of our own choosing: two of them still fit into every listing's deadline.
pub const RETRY_CAP: Duration = Duration::from_secs(8);

/// The longest wait that a provider asks for and that is waited within a call; a longer one is told to the caller, who
/// polls again anyway. Azure asks for 10 to 20 seconds when it throttles.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(20);

/// Calls an account may make a second, terminates apart. The strictest of the usual read quotas with room: EC2 refills
/// 20 describes a second, GCP 20 reads, Azure some 10; other tools share the account.
pub const CALLS_PER_SECOND: f64 = 5.0;

/// Calls an account may make at once after a quiet while: a listing over some twenty regions starts without waiting.
pub const CALLS_BURST: u32 = 20;

/// Terminates an account may make a second beside that. EC2 refills five a second; this budget is never touched by
/// reads, so that stopping what costs money never queues behind looking at it.
pub const TERMINATES_PER_SECOND: f64 = 2.0;

/// Terminates an account may make at once: the nodes of an ordinary gang.
pub const TERMINATES_BURST: u32 = 16;

/// A call that would wait longer than this for its place is refused as throttled: it is certain that nothing was sent.
pub const RATE_WAIT_MAX: Duration = Duration::from_secs(20);

/// How long the account is left alone after it was throttled without being told for how long. Token buckets of the
/// large clouds refill a usable amount within two seconds.
pub const THROTTLED_PAUSE: Duration = Duration::from_secs(2);
/// The longest that is paused for a provider's asking.
pub const THROTTLED_PAUSE_MAX: Duration = Duration::from_mins(5);

/// So many calls of one kind must fail in a row, each after its retries, before that kind is left alone. Five are no
/// coincidence, and at one a minute an outage is met with patience.
pub const CIRCUIT_FAILURES: u32 = 5;

/// For how long it is left alone at first, doubled each time the one trial call fails too.
pub const CIRCUIT_OPEN: Duration = Duration::from_secs(30);

/// …and at most: an outage that ends is noticed within this.
pub const CIRCUIT_OPEN_MAX: Duration = Duration::from_mins(5);

// ── Azure ────────────────────────────────────────────────────────────────────────────────────────────────────────

/// One call to Azure. Its list of sizes for every region takes tens of seconds on a bad day.
pub const AZURE_CALL_TIMEOUT: Duration = Duration::from_mins(1);

/// The longest start-up script that Google takes: one metadata value.
pub const GCP_USER_DATA_BYTES: usize = 256 * 1024;

/// The longest start-up script that Azure takes: 65,535 bytes, before they are written as text.
pub const AZURE_USER_DATA_BYTES: usize = 65_535;

/// Azure's public list of retail prices: no token, USD, a thousand meters a page.
pub const AZURE_PRICES_URL: &str = "https://prices.azure.com/api/retail/prices";
/// How long its prices are believed: they change a few times a month, spot's at most a few times a day.
pub const AZURE_PRICES_TTL: Duration = Duration::from_hours(1);
/// Pages of one question to it: fifteen sizes in sixty regions with six meters each are six.
pub const AZURE_PRICE_PAGES: usize = 50;
/// Sizes asked for in one question; a filter of more makes an address longer than some proxies take.
pub const AZURE_SKUS_A_QUESTION: usize = 15;
/// How long quotas are believed: raised by hand, used up by ourselves.
pub const QUOTA_TTL: Duration = Duration::from_mins(5);
/// Pages of one list, as a guard against one that leads in a circle. The list of sizes for every region has about ten.
pub const AZURE_MAX_PAGES: u32 = 1_000;

/// The largest answer that is read. The list of sizes for all regions is about 10 MB.
pub const AZURE_MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

// ── Importing price tables ───────────────────────────────────────────────────────────────────────────────────────────

/// Findings that are kept of tables that are refused: nobody reads more, and a hostile file must not fill the memory.
pub const IMPORT_FINDINGS: usize = 100;
/// Where `catalogue update` fetches tables from unless the configuration says otherwise: the SkyPilot project's public
/// ones, made anew every few hours.
pub const CATALOGUE_URL: &str = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8";
/// Longest wait for one of those tables: 30 MB over a slow line.
pub const CATALOGUE_FETCH: Duration = Duration::from_mins(2);
/// Probes of one address by `latency --probe`, and the pause between two: a hundredth-percentile needs more, a public
/// endpoint deserves no more.
pub const PROBES: u32 = 20;
/// See [`PROBES`].
pub const PROBE_PAUSE: Duration = Duration::from_millis(100);
/// A connection that takes longer counts as lost: the farthest public region is 400 ms away.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// The largest table that is read. The largest public one has 30 MB; it is read into memory as a whole.
pub const IMPORT_TABLE_BYTES: u64 = 100 * 1024 * 1024;
/// The longest field of a table. The longest real one, the description of a GPU, has some 300 bytes.
pub const IMPORT_FIELD_BYTES: usize = 4_096;
/// The dearest instance in USD an hour; the dearest for rent costs some 500.
pub const IMPORT_DEAREST_USD: f64 = 100_000.0;
/// The most accelerators of one machine; the largest for rent has 72.
pub const IMPORT_ACCELERATORS: f64 = 1_024.0;
/// The most virtual CPUs of one machine; the largest for rent has 1,920.
pub const IMPORT_VCPUS: f64 = 65_536.0;
/// The most memory of one machine in GiB; the largest for rent has 32 TiB.
pub const IMPORT_MEMORY_GIB: f64 = 262_144.0;
/// A spot column that repeats the on-demand price in so many rows without exception is no spot price. Fewer may be a
/// cap: of the 558 spot prices in the bundled AWS table 47 stand at it.
pub const IMPORT_REPEATED_SPOT_ROWS: usize = 20;
// ── cockpit ─────────────────────────────────────────────────────────────

/// A live figure older than that, from a source past its age limit, is shown as `?`: ten minutes is three spot price
/// changes of the quickest cloud, and longer than any outage that heals by itself.
pub const FIGURE_AGE: chrono::Duration = chrono::Duration::minutes(10);
/// Real: keys that arrive so soon after a confirmation opened were meant for what was there before it (type-ahead, key
/// repeat at 30 a second, a slow link delivering late).
pub const CONFIRM_GUARD: Duration = Duration::from_millis(500);
/// Real: a signal that asks the cockpit to end is obeyed within that, whatever holds the drawing up.
pub const SIGNAL_PATIENCE: Duration = Duration::from_millis(900);
/// Real: a plan that has been looked at for so long is made anew before it may be confirmed; prices move.
pub const PLAN_VALID: Duration = Duration::from_mins(1);
/// Real: whatever is loading says what is wrong after that.
pub const LOADING_DEADLINE: Duration = Duration::from_secs(10);
/// Real: shortest time between two frames for a key: 120 a second, so that holding a key does not queue frames.
pub const FRAME_KEY: Duration = Duration::from_millis(8);
/// Real: shortest time between two frames for new data. Nobody reads faster, and 5 frames of 1–3 kB a second pass
/// through a slow SSH link.
pub const FRAME_DATA: Duration = Duration::from_millis(200);
/// Real: a frame whose write blocks for longer doubles the time to the next one.
pub const FRAME_SLOW_WRITE: Duration = Duration::from_millis(100);
/// Real: the longest that it is stretched to.
pub const FRAME_MAX: Duration = Duration::from_secs(2);
/// Real: shortest time between two computations of what tables show from new data. Sorting 100,000 rows takes tens of
/// milliseconds of a core; four times a second is 1 % to 10 % of one.
pub const BOARD_EVERY: Duration = Duration::from_millis(250);
/// Real: pieces of a terminal's reply to a question are no further apart than that on a slow link; what comes later is a
/// person.
pub const REPLY_GAP: Duration = Duration::from_secs(1);
/// World: a job's machines that were not seen for longer are not acted on from the screen before they are; they are
/// looked at every ten seconds.
pub const JOB_UNSEEN: Duration = Duration::from_mins(2);
/// Real: the same where the world goes faster than machines can be looked at.
pub const JOB_UNSEEN_REAL: Duration = Duration::from_secs(5);
/// Real: what comes so soon after a reply's opening belongs to it, whatever it is.
pub const REPLY_BEGIN: Duration = Duration::from_millis(100);
/// The longest reply that is swallowed: a clipboard of a few kB.
pub const REPLY_KEYS: u32 = 16_384;
/// So many different characters that arrive at once were pasted, not typed, even where the terminal does not say so.
pub const BURST: usize = 16;
/// Largest text copied to the clipboard: what tmux and xterm pass on.
pub const COPY_MAX: usize = 8_192;
/// Longest line that can be typed; longer than any name, expression or command.
pub const LINE_MAX: usize = 400;
/// Candidates shown as alternatives of a plan.
pub const ALTERNATIVES: usize = 20;
/// Regions in the latency matrix, each way. More do not fit a screen; the nearest to what runs are taken.
pub const MATRIX: usize = 40;
/// Events kept for a job's log on the screen.
pub const LOG_LINES: usize = 500;

// ── AWS ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Longest wait for a connection to EC2: a round trip round the world and its TLS handshake take under two seconds.
pub const AWS_CONNECT: Duration = Duration::from_secs(5);
/// Longest wait for one answer of EC2. The slowest honest ones (a page of a hundred described types, `RunInstances`)
/// take up to ten seconds; beyond twenty nobody is there.
pub const AWS_CALL: Duration = Duration::from_secs(20);
/// Longest time for all that one region is asked for its offers (about ten calls on the first poll, five later), so
/// that a region that answers by drops cannot hold up the others.
pub const AWS_REGION: Duration = REGION_DEADLINE;
/// Longest answer that is read. The largest that EC2 gives, a page of instance types, has about a megabyte.
pub const AWS_BODY_BYTES: usize = 32 << 20;
/// Regions asked at once. EC2 limits calls by region, so this bounds only our own sockets and memory.
pub const AWS_REGIONS_AT_ONCE: usize = 8;
/// How long a region waits for another one to find out which of the many hundred types have no accelerator, before it
/// asks for itself: the answer spares some 6 MB, a hanging region must not cost more than this.
pub const AWS_FIRST_LISTING_WAIT: Duration = Duration::from_secs(5);
/// Between the announcement that a spot machine is taken away and the doing, as AWS says.
pub const AWS_SPOT_NOTICE: chrono::Duration = chrono::Duration::minutes(2);
/// How long the word holds whose account the credentials belong to: as long as an SDK keeps credentials at the least.
pub const AWS_ACCOUNT: Duration = Duration::from_mins(5);
/// And while nobody answers that question: the shortest session that AWS gives out credentials for.
pub const AWS_ACCOUNT_LAST_RESORT: Duration = Duration::from_mins(15);
/// How long the list of an account's regions is believed: regions are switched on and off a few times a year.
pub const AWS_REGION_LIST: Duration = Duration::from_hours(1);
/// Types asked for by name in one call; EC2 takes up to 200 values in a filter and 100 types in a page.
pub const AWS_TYPES_A_CALL: usize = 100;
/// Machines asked for by id in one call; EC2 takes up to 200 values in a filter.
pub const AWS_MACHINES_A_CALL: usize = 100;
/// Pages of one listing that are read: a hundred times what the largest listing has. More is an endless one.
pub const AWS_PAGES: usize = 500;
/// Longest wait that a throttling answer can ask for; EC2 itself refills its buckets within a minute.
pub const AWS_RETRY_AFTER: Duration = Duration::from_mins(15);
/// Wait for the machine's own metadata service, where the configuration allows to ask it at all: it answers within
/// milliseconds or is not there.
pub const AWS_INSTANCE_METADATA: Duration = Duration::from_millis(500);
/// Most user data of one machine, in bytes before it is encoded: EC2's own bound.
pub const AWS_USER_DATA_BYTES: usize = 16 * 1024;
