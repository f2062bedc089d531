//! Which known name was probably meant.

/// The known name nearest to `name`, if one is near enough to be worth a guess: at most a third of
/// its letters inserted, omitted, replaced or swapped with a neighbour.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A longer name is not a typing error, and the table of distances would grow with it.
    const LONGEST: usize = 64;
    let plain: Vec<char> = name.chars().take(LONGEST + 1).flat_map(char::to_lowercase).collect();
    if plain.len() > LONGEST {
        return None;
    }
    known
        .into_iter()
        .filter_map(|k| {
            let target: Vec<char> = k.chars().flat_map(char::to_lowercase).collect();
            let d = distance(&plain, &target);
            (d <= (target.len().max(plain.len()) / 3).max(1) && d < target.len()).then_some((d, k))
        })
        .min_by_key(|(d, _)| *d)
        .map(|(_, k)| k)
}

/// Optimal string alignment: insertions, deletions, replacements and swaps of neighbours.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut d = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                d = d.min(before[j - 2] + 1);
            }
            row.push(d);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// `did you mean "limit"? Known here: …`: the remedy for an unknown name.
#[must_use]
pub fn suggest(name: &str, known: &[&str]) -> String {
    let all = known.join(", ");
    match nearest(name, known.iter().copied()) {
        Some(n) => format!("did you mean \"{n}\"? Known here: {all}"),
        None => format!("known here: {all}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_recognised() {
        let known = ["min_th", "max_th", "max_p", "limit", "aqm"];
        assert_eq!(nearest("limt", known), Some("limit"));
        assert_eq!(nearest("mx_p", known), Some("max_p"));
        assert_eq!(nearest("qam", known), Some("aqm"));
        assert_eq!(nearest("Limit", known), Some("limit"));
        assert_eq!(nearest("bandwidth", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
    }
}
