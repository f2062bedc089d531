//! ACK filter: as an acknowledgement joins a queue, an older one of its flow that still waits there is dropped, if all that it said is said
//! again behind it. So a slow way back carries the newest acknowledgements, and few of them.
//!
//! Idea: RFC 3449 §5.2.1. Which may go: `ack-filter` of CAKE (Høiland-Jørgensen, Täht and Morton 2018; Linux's `sch_cake`), in its
//! conservative mode, where another that may go stays behind the one that does. Stricter than CAKE in one rule: an acknowledgement with SACK
//! blocks never goes, even if a later one has the same blocks.
//!
//! Non-goal: acknowledgements at packets of data that go the same way.

/// What the filter goes by, of a packet of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The next byte expected, modulo 2³².
    pub number: u32,
    /// ECN's three flags (ECE, CWR, AE) as a number.
    pub ecn: u8,
    /// Whether it has neither data nor options but a timestamp, nor any flag but ACK, ECE and CWR.
    pub plain: bool,
}

/// Which acknowledgement goes as `newest` has joined behind these, the packets of its flow that wait, head first: the first for which a
/// second follows, both plain and with lower numbers than `newest`, without a change of ECN's flags from one to the other. One with the
/// number of `newest` is a duplicate, or announces another window, and stays.
pub fn superseded<P>(
    waiting: impl IntoIterator<Item = (P, Acknowledgement)>,
    newest: Acknowledgement,
) -> Option<P> {
    let mut first = None;
    for (place, ack) in waiting {
        first = first.filter(|(_, ecn)| *ecn == ack.ecn);
        if !ack.plain || ack.number.wrapping_sub(newest.number) as i32 >= 0 {
            continue;
        }
        match first {
            Some((superseded, _)) => return Some(superseded),
            None => first = Some((place, ack.ecn)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    fn ack(number: u32) -> Acknowledgement {
        Acknowledgement { number, ecn: 0, plain: true }
    }

    fn goes(waiting: &[Acknowledgement], newest: Acknowledgement) -> Option<usize> {
        superseded(waiting.iter().copied().enumerate(), newest)
    }

    #[test]
    fn by_hand() {
        let ece = |number| Acknowledgement { ecn: 1, ..ack(number) };
        let sack = |number| Acknowledgement { plain: false, ..ack(number) };
        // One that may go stays behind the one that does.
        assert_eq!(goes(&[], ack(9)), None);
        assert_eq!(goes(&[ack(1)], ack(9)), None);
        assert_eq!(goes(&[ack(1), ack(2)], ack(9)), Some(0));
        assert_eq!(goes(&[ack(1), ack(2), ack(3)], ack(9)), Some(0));
        // SACK blocks stay, and do not stand in for another.
        assert_eq!(goes(&[sack(1), ack(2)], ack(9)), None);
        assert_eq!(goes(&[ack(1), sack(1), ack(2)], ack(9)), Some(0));
        // Duplicates and window updates of the newest.
        assert_eq!(goes(&[ack(1), ack(9)], ack(9)), None);
        assert_eq!(goes(&[ack(9), ack(9)], ack(9)), None);
        // No change of ECE is lost, in either direction; the flags of the newest are its own.
        assert_eq!(goes(&[ece(1), ack(2)], ack(9)), None);
        assert_eq!(goes(&[ack(1), ece(2), ack(3)], ack(9)), None);
        assert_eq!(goes(&[ece(1), ece(2)], ack(9)), Some(0));
        assert_eq!(goes(&[ack(1), ece(2), ece(3), ack(4)], ack(9)), Some(1));
        // Numbers start over at 2³²; a late one supersedes nothing.
        assert_eq!(goes(&[ack(u32::MAX - 1), ack(u32::MAX)], ack(3)), Some(0));
        assert_eq!(goes(&[ack(8), ack(9)], ack(3)), None);
    }

    /// The same from the sentence: the first that may go before another that may go, with nothing between them of other flags.
    fn oracle(waiting: &[Acknowledgement], newest: Acknowledgement) -> Option<usize> {
        let may_go = |a: &Acknowledgement| a.plain && i64::from(a.number) < i64::from(newest.number);
        let pairs = (0..waiting.len()).flat_map(|i| (i + 1..waiting.len()).map(move |j| (i, j)));
        let mut found: Vec<usize> = pairs
            .filter(|&(i, j)| may_go(&waiting[i]) && may_go(&waiting[j]))
            .filter(|&(i, j)| waiting[i..=j].iter().all(|a| a.ecn == waiting[i].ecn))
            .map(|(i, _)| i)
            .collect();
        found.sort_unstable();
        found.first().copied()
    }

    proptest! {
        #[test]
        fn it_is_the_sentence(
            all in prop::collection::vec((0u32..6, 0u8..3, any::<bool>(), any::<bool>()), 1..9),
        ) {
            let all: Vec<_> = all
                .into_iter()
                .map(|(number, ecn, a, b)| Acknowledgement { number, ecn: ecn / 2, plain: a || b })
                .collect();
            let (newest, waiting) = all.split_last().unwrap();
            prop_assert_eq!(goes(waiting, *newest), oracle(waiting, *newest));
        }

        /// A queue that is filled and emptied by turns: what leaves tells all that came of ECE and of SACK, in order, and ends with the
        /// last; of plain ones that rise no more than two wait.
        #[test]
        fn what_leaves_tells_what_came(
            steps in prop::collection::vec((0u32..3, 0u8..8, 0u8..6, any::<bool>()), 1..80),
        ) {
            let (mut queue, mut came, mut left) = (Vec::new(), Vec::new(), Vec::new());
            let mut number = u32::MAX - 20;
            for (more, ecn, plain, leaves) in steps {
                number = number.wrapping_add(more);
                let newest = Acknowledgement { number, ecn: u8::from(ecn == 7), plain: plain > 0 };
                came.push(newest);
                let gone = goes(&queue, newest);
                queue.push(newest);
                if let Some(gone) = gone {
                    let gone: Acknowledgement = queue.remove(gone);
                    prop_assert!(gone.plain);
                    let rest = &queue[..];
                    let later = |a: &Acknowledgement| a.number.wrapping_sub(gone.number) as i32 >= 0;
                    prop_assert!(rest.iter().any(|a| a.plain && a.ecn == gone.ecn && later(a)));
                }
                if leaves && !queue.is_empty() {
                    left.push(queue.remove(0));
                }
            }
            left.append(&mut queue);
            prop_assert_eq!(left.last(), came.last());
            let selects = |all: &[Acknowledgement]| all.iter().filter(|a| !a.plain).copied().collect::<Vec<_>>();
            prop_assert_eq!(selects(&left), selects(&came));
            let turns = |all: &[Acknowledgement]| {
                let mut flags: Vec<u8> = all.iter().map(|a| a.ecn).collect();
                flags.dedup();
                flags
            };
            prop_assert_eq!(turns(&left), turns(&came));
        }
    }

    #[test]
    fn two_wait_where_all_rise() {
        let mut queue = Vec::new();
        for number in 1..100 {
            if let Some(gone) = goes(&queue, ack(number)) {
                queue.remove(gone);
            }
            queue.push(ack(number));
            assert!(queue.len() <= 2, "{queue:?}");
        }
        assert_eq!(queue, [ack(98), ack(99)]);
    }
}
