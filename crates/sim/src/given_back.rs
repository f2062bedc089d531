//! A list that is freed as it is used up. A million flows of the network become a million of the run: memory should not hold both.

/// How many are freed at once.
const BLOCK: usize = 1 << 12;

/// All of them in order.
pub(crate) fn given_back<T>(mut all: Vec<T>) -> impl Iterator<Item = T> {
    let mut blocks = Vec::new();
    while all.len() > BLOCK {
        blocks.push(all.split_off((all.len() - 1) / BLOCK * BLOCK));
        // In place: what a large allocation ends with goes back to the system.
        all.shrink_to_fit();
    }
    blocks.push(all);
    std::iter::from_fn(move || blocks.pop()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_come_in_order() {
        for n in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 20_000] {
            assert!(given_back((0..n).collect()).eq(0..n), "{n}");
        }
    }
}
