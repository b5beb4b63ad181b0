//! Generated rounds of commands: those whose waits come in time are clean, and each with a wait that is too late is
//! found.
//! `scripts/orders` plays any number.

use urscope_tests::order_rounds::{Interface, Rounds};
use urscope_tests::{Adapter, on_all_processors};

const ROUNDS: u64 = 40;

#[test]
fn each_late_wait_is_found_and_nothing_else() {
    let interfaces =
        [Interface::Sycl(Adapter::V1), Interface::Sycl(Adapter::V2), Interface::Cuda, Interface::LevelZero];
    let programs = interfaces.into_iter().flat_map(|interface| [(interface, false), (interface, true)]);
    on_all_processors(programs.zip(1..), |((interface, wrong), seed)| {
        let rounds = Rounds::new(seed, ROUNDS, wrong);
        assert_eq!(rounds.wrong.len() > 10, wrong);
        assert_eq!(rounds.complaint(interface), None, "{interface:?}, seed {seed}:\n{}", rounds.text);
    });
}
