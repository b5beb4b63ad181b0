//! Generated rounds of commands: those whose waits come in time, whose events are waited for and whose flags are
//! written behind the command are clean, and each with a mistake is found. `scripts/orders` plays any number.

use urscope_tests::order_rounds::{Interface, Mistakes, Rounds};
use urscope_tests::{Adapter, on_all_processors};

const ROUNDS: u64 = 40;

#[test]
fn each_mistake_is_found_and_nothing_else() {
    let interfaces =
        [Interface::Sycl(Adapter::V1), Interface::Sycl(Adapter::V2), Interface::Cuda, Interface::LevelZero];
    let all = [Mistakes::No, Mistakes::LateWaits, Mistakes::Any];
    let programs = interfaces.into_iter().flat_map(|interface| all.map(|mistakes| (interface, mistakes)));
    on_all_processors(programs.zip(1..), |((interface, mistakes), seed)| {
        let rounds = Rounds::new(seed, ROUNDS, interface, mistakes);
        assert_eq!(rounds.wrong.len() > 10, mistakes != Mistakes::No);
        assert_eq!(rounds.complaint(), None, "{interface:?}, {mistakes:?}, seed {seed}:\n{}", rounds.text);
    });
}
