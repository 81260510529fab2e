//! Cycles in a graph of imports.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::modules::Graph;

/// A shortest cycle through each node that is on one. Nodes of a cycle that was already found
/// are skipped.
pub(super) fn find(graph: &Graph) -> Vec<Vec<&str>> {
    let mut covered = BTreeSet::new();
    let mut cycles = Vec::new();
    for start in graph.keys() {
        if !covered.contains(start.as_str())
            && let Some(cycle) = shortest_path(graph, start, start)
        {
            covered.extend(cycle.iter().copied());
            cycles.push(cycle);
        }
    }
    cycles
}

/// The nodes from `from` to `to`, both included; at least one edge long.
pub(super) fn shortest_path<'a>(graph: &'a Graph, from: &'a str, to: &str) -> Option<Vec<&'a str>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut next = VecDeque::from([from]);
    while let Some(node) = next.pop_front() {
        for imported in graph.get(node).into_iter().flatten() {
            if came_from.contains_key(imported.as_str()) {
                continue;
            }
            came_from.insert(imported, node);
            if imported == to {
                return Some(walk_back(&came_from, from, imported));
            }
            next.push_back(imported);
        }
    }
    None
}

fn walk_back<'a>(came_from: &BTreeMap<&str, &'a str>, from: &str, to: &'a str) -> Vec<&'a str> {
    let mut path = vec![to];
    let mut node = to;
    while let Some(previous) = came_from.get(node) {
        path.push(previous);
        node = previous;
        if node == from {
            break;
        }
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &str)]) -> Graph {
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph
                .entry((*from).to_owned())
                .or_default()
                .insert((*to).to_owned());
        }
        graph
    }

    #[test]
    fn a_cycle_is_reported_as_its_path() {
        let graph = graph(&[("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")]);
        assert_eq!(find(&graph), [["b", "c", "b"]]);
    }

    #[test]
    fn a_graph_without_a_cycle_is_clean() {
        assert!(find(&graph(&[("a", "b"), ("a", "c"), ("b", "c")])).is_empty());
    }

    #[test]
    fn separate_cycles_are_all_reported() {
        let graph = graph(&[("a", "b"), ("b", "a"), ("b", "c"), ("c", "d"), ("d", "c")]);
        assert_eq!(find(&graph), [["a", "b", "a"], ["c", "d", "c"]]);
    }
}
