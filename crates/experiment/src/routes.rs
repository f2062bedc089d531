//! Shortest routes by number of links, in either direction of each link. A tie is an error, never broken silently.

use std::collections::VecDeque;

/// Nodes and the directions of links that leave them.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    leaving: Vec<Vec<Hop>>,
}

/// One direction of a link, seen from the node it leaves.
#[derive(Clone, Copy, Debug)]
struct Hop {
    to: u32,
    direction: u32,
}

/// Fewest-link routes from one node to all others.
pub(crate) struct Tree {
    from: u32,
    reached: Vec<Option<Reached>>,
}

#[derive(Clone, Copy, Debug)]
struct Reached {
    hops: u32,
    /// The last step of the route, and the node it comes from; none at the start itself.
    last: Option<Step>,
    /// The last step of another route that is as short.
    other: Option<Step>,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    from: u32,
    direction: u32,
}

/// The outcome of a search for a route.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RouteSearch {
    /// The one shortest route: directions of links, in order.
    Route(Vec<u32>),
    /// Two that are equally short.
    Tie(Vec<u32>, Vec<u32>),
    /// There is none.
    Nothing,
}

impl Graph {
    /// With so many nodes and no links.
    pub fn new(nodes: usize) -> Graph {
        Graph { leaving: vec![Vec::new(); nodes] }
    }

    /// Adds link `k`: its forward direction is number 2k, its reverse number 2k + 1.
    pub fn join(&mut self, k: u32, from: u32, to: u32) {
        self.leaving[from as usize].push(Hop { to, direction: 2 * k });
        self.leaving[to as usize].push(Hop { to: from, direction: 2 * k + 1 });
    }

    /// Breadth first, links in the order of the file.
    pub fn from(&self, from: u32) -> Tree {
        let mut reached: Vec<Option<Reached>> = vec![None; self.leaving.len()];
        reached[from as usize] = Some(Reached { hops: 0, last: None, other: None });
        let mut queue = VecDeque::from([(from, 0)]);
        while let Some((node, hops)) = queue.pop_front() {
            for hop in &self.leaving[node as usize] {
                let step = Step { from: node, direction: hop.direction };
                match &mut reached[hop.to as usize] {
                    Some(there) if there.hops == hops + 1 => {
                        there.other.get_or_insert(step);
                    }
                    Some(_) => {}
                    empty => {
                        *empty = Some(Reached { hops: hops + 1, last: Some(step), other: None });
                        queue.push_back((hop.to, hops + 1));
                    }
                }
            }
        }
        Tree { from, reached }
    }
}

impl Tree {
    /// The route to `to`.
    pub fn to(&self, to: u32) -> RouteSearch {
        if self.reached[to as usize].is_none() {
            return RouteSearch::Nothing;
        }
        // The node nearest to `to` at which two routes meet.
        let (mut node, mut tail) = (to, Vec::new());
        let mut tie = None;
        while let Some(Reached { last: Some(step), other, .. }) = self.reached[node as usize] {
            if let (Some(other), None) = (other, &tie) {
                let mut second = tail.clone();
                second.push(other.direction);
                self.walk(other.from, &mut second);
                tie = Some(second);
            }
            tail.push(step.direction);
            node = step.from;
        }
        debug_assert_eq!(node, self.from);
        tail.reverse();
        match tie {
            Some(mut second) => {
                second.reverse();
                RouteSearch::Tie(tail, second)
            }
            None => RouteSearch::Route(tail),
        }
    }

    /// Every node that is reached, the start among them.
    pub fn reached(&self) -> impl Iterator<Item = u32> {
        self.reached.iter().enumerate().filter(|(_, r)| r.is_some()).map(|(i, _)| i as u32)
    }

    /// Adds the links from `node` back to the start, last first.
    fn walk(&self, mut node: u32, directions: &mut Vec<u32>) {
        while let Some(Reached { last: Some(step), .. }) = self.reached[node as usize] {
            directions.push(step.direction);
            node = step.from;
        }
    }
}

/// The reverse route, which acknowledgements take.
pub(crate) fn reversed(path: &[u32]) -> Vec<u32> {
    path.iter().rev().map(|direction| direction ^ 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_route_goes_over_reverse_directions_too() {
        let mut g = Graph::new(4);
        g.join(0, 0, 1);
        g.join(1, 2, 1);
        g.join(2, 2, 3);
        let tree = g.from(0);
        assert_eq!(tree.to(3), RouteSearch::Route(vec![0, 3, 4]));
        assert_eq!(tree.to(0), RouteSearch::Route(vec![]));
        assert_eq!(reversed(&[0, 3, 4]), [5, 2, 1]);
    }

    #[test]
    fn ties_are_found_wherever_they_lie() {
        // A diamond 0-{1,2}-3, then 3-4.
        let mut g = Graph::new(6);
        for (k, (a, b)) in [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)].into_iter().enumerate() {
            g.join(k as u32, a, b);
        }
        assert_eq!(g.from(0).to(4), RouteSearch::Tie(vec![0, 4, 8], vec![2, 6, 8]));
        assert_eq!(g.from(1).to(4), RouteSearch::Route(vec![4, 8]));
        assert_eq!(g.from(0).to(5), RouteSearch::Nothing);
    }

    #[test]
    fn two_links_between_the_same_nodes_are_a_tie() {
        let mut g = Graph::new(2);
        g.join(0, 0, 1);
        g.join(1, 1, 0);
        assert_eq!(g.from(0).to(1), RouteSearch::Tie(vec![0], vec![3]));
    }
}
