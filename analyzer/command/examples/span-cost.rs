//! Measures what recording a call costs by other means, for `scripts/bench overhead`.
//!
//! `span-cost ROUNDS CALLS` prints one line for each round: the nanoseconds of a span of the `tracing` crate with the
//! values of a call through `tracing-chrome`, and of two records of the size of urscope's Chrome form with a `write(2)`
//! each.

use std::io::{self, Write as _};
use std::{env, error::Error, fs::File, time::Instant};

use tracing_chrome::ChromeLayerBuilder;
use tracing_subscriber::layer::SubscriberExt as _;

/// The two records of a get, as the library writes them in the Chrome form.
const RECORDS: [&str; 2] = [
    ",{\"ph\":\"B\",\"pid\":4242,\"tid\":4242,\"ts\":1000000.250,\"cat\":\"api\",\"name\":\"urIPCGetMemHandleExp\",\
     \"args\":{\"call\":100017,\"via\":1,\"context\":\"0x55d0c0dec0de\",\"pointer\":\"0x7f0000000000\",\"stack\":17}}\n",
    ",{\"ph\":\"E\",\"pid\":4242,\"tid\":4242,\"ts\":1000003.125,\"cat\":\"api\",\"name\":\"urIPCGetMemHandleExp\",\
     \"args\":{\"call\":100017,\"result\":0,\"result_name\":\"UR_RESULT_SUCCESS\",\"data\":\"0x555500000000\",\
     \"data_size\":120,\"fingerprint\":\"0x5555555555555555\"}}\n",
];

fn span(call: u64) {
    let span = tracing::trace_span!(
        "urIPCGetMemHandleExp",
        call,
        via = 1_u64,
        context = 0x55d0_c0de_c0de_u64,
        pointer = 0x7f00_0000_0000_u64,
        data = tracing::field::Empty,
        data_size = tracing::field::Empty,
        fingerprint = tracing::field::Empty,
    )
    .entered();
    span.record("data", 0x5555_0000_0000_u64);
    span.record("data_size", 120_u64);
    span.record("fingerprint", 0x5555_5555_5555_5555_u64);
}

/// The nanoseconds of one of `calls`.
fn took(calls: u64, mut call: impl FnMut(u64) -> io::Result<()>) -> io::Result<f64> {
    let start = Instant::now();
    (0..calls).try_for_each(&mut call)?;
    Ok(start.elapsed().as_nanos() as f64 / calls as f64)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = env::args().skip(1).map(|number| number.parse::<u64>());
    let (rounds, calls) = match (numbers.next(), numbers.next()) {
        (Some(rounds), Some(calls)) => (rounds?, calls?),
        _ => return Err("usage: span-cost ROUNDS CALLS".into()),
    };
    let folder = env::temp_dir().join(format!("urscope-span-cost-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let mut written = File::create(folder.join("written"))?;
    let (layer, guard) = ChromeLayerBuilder::new().file(folder.join("spans")).include_args(true).build();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?;
    for _ in 0..rounds {
        let writes = took(calls, |_| RECORDS.iter().try_for_each(|record| written.write_all(record.as_bytes())))?;
        let spans = took(calls, |call| {
            span(call);
            Ok(())
        })?;
        writeln!(io::stdout(), "{spans} {writes}")?;
    }
    drop(guard);
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
