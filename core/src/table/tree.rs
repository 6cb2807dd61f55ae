//! A persistent B-tree: entries in leaves, in the order of their keys, and branches that lead to them.
//!
//! Trees that are clones of each other share every node that none of them has changed since. `docs/decisions/0006`
//! says why this is no library.

use std::borrow::Borrow;
use std::slice;
use std::sync::Arc;

/// Most entries of a leaf, and most children of a branch. A change copies one node of each level: with less in
/// them there are more levels, with more each is dearer to copy.
const MOST: usize = 24;
/// A node with less is put together with one beside it where both fit into one.
const FEW: usize = MOST / 2;

/// A sorted map.
#[derive(Clone)]
pub(super) struct Tree<K, V> {
    root: Arc<Node<K, V>>,
    len: usize,
}

enum Node<K, V> {
    Leaf(Vec<(K, V)>),
    /// Boxed, or each leaf would take as much.
    Branch(Box<Branch<K, V>>),
}

/// Nodes of one level. One bound stands between each two of them: no key before it is as great, and none after it
/// is less.
#[derive(Clone)]
struct Branch<K, V> {
    /// Shared, because they change only where nodes come and go.
    bounds: Arc<[K]>,
    children: Vec<Arc<Node<K, V>>>,
}

/// What has become of a node that took an entry in.
enum Grown<K, V> {
    /// An entry was replaced.
    Not,
    /// There is one entry more.
    Inside,
    /// So many that it is two nodes now: this one stands behind it, and this bound between them.
    Apart(K, Arc<Node<K, V>>),
}

// === impl Tree ===

impl<K: Ord + Clone, V: Clone> Tree<K, V> {
    pub(super) fn new() -> Self {
        Self {
            root: Arc::new(Node::Leaf(Vec::new())),
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = search(entries, key).ok()?;
                    return Some(&entries[at].1);
                }
                Node::Branch(branch) => node = &branch.children[branch.place(key)],
            }
        }
    }

    /// The value, of which this tree has its own from then on.
    pub(super) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        // Nothing is copied for what is not there.
        self.get(key)?;
        let mut node = Arc::make_mut(&mut self.root);
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = search(entries, key).ok()?;
                    return Some(&mut entries[at].1);
                }
                Node::Branch(branch) => {
                    let at = branch.place(key);
                    node = Arc::make_mut(&mut branch.children[at]);
                }
            }
        }
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        match Node::insert(&mut self.root, key, value) {
            Grown::Not => return,
            Grown::Inside => {}
            Grown::Apart(bound, behind) => {
                self.root = Branch {
                    bounds: [bound].into(),
                    children: vec![Arc::clone(&self.root), behind],
                }
                .into();
            }
        }
        self.len += 1;
    }

    /// Says whether there was something.
    pub(super) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        // Nothing is copied for what is not there.
        if self.get(key).is_none() {
            return false;
        }
        Node::remove(&mut self.root, key);
        self.len -= 1;
        while let Node::Branch(branch) = &*self.root
            && branch.children.len() < 2
        {
            let only = branch.children.first();
            self.root = only.map_or_else(|| Self::new().root, Arc::clone);
        }
        true
    }

    pub(super) fn iter(&self) -> Iter<'_, K, V> {
        let mut iter = Iter::default();
        iter.descend(&self.root);
        iter
    }

    /// Entries from `key` on.
    pub(super) fn starting_at<Q: Ord + ?Sized>(&self, key: &Q) -> Iter<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let mut iter = Iter::default();
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let (Ok(at) | Err(at)) = search(entries, key);
                    iter.leaf = entries[at..].iter();
                    return iter;
                }
                Node::Branch(branch) => {
                    let at = branch.place(key);
                    iter.above.push(branch.children[at + 1..].iter());
                    node = &branch.children[at];
                }
            }
        }
    }
}

/// Where the key is, or would be.
fn search<K: Borrow<Q>, V, Q: Ord + ?Sized>(entries: &[(K, V)], key: &Q) -> Result<usize, usize> {
    entries.binary_search_by(|(other, _)| other.borrow().cmp(key))
}

// === impl Node ===

impl<K: Clone, V: Clone> Clone for Node<K, V> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(entries) => {
                // Copies are made to be changed.
                let mut copy = Vec::with_capacity(entries.len() + 1);
                copy.extend_from_slice(entries);
                Self::Leaf(copy)
            }
            Self::Branch(branch) => Self::Branch(branch.clone()),
        }
    }
}

impl<K: Ord + Clone, V: Clone> Node<K, V> {
    fn len(&self) -> usize {
        match self {
            Self::Leaf(entries) => entries.len(),
            Self::Branch(branch) => branch.children.len(),
        }
    }

    fn insert(this: &mut Arc<Self>, key: K, value: V) -> Grown<K, V> {
        match Arc::make_mut(this) {
            Self::Leaf(entries) => match search(entries, &key) {
                Ok(at) => {
                    entries[at].1 = value;
                    Grown::Not
                }
                Err(at) => {
                    // There are very many leaves: room for what may come would be a third of them.
                    entries.reserve_exact(1);
                    entries.insert(at, (key, value));
                    if entries.len() <= MOST {
                        return Grown::Inside;
                    }
                    let behind = entries.split_off(middle(at));
                    entries.shrink_to_fit();
                    Grown::Apart(behind[0].0.clone(), Arc::new(Self::Leaf(behind)))
                }
            },
            Self::Branch(branch) => {
                let at = branch.place(&key);
                match Self::insert(&mut branch.children[at], key, value) {
                    Grown::Apart(bound, behind) => branch.insert(at, bound, behind),
                    grown @ (Grown::Not | Grown::Inside) => grown,
                }
            }
        }
    }

    /// Takes out what is there.
    fn remove<Q: Ord + ?Sized>(this: &mut Arc<Self>, key: &Q)
    where
        K: Borrow<Q>,
    {
        match Arc::make_mut(this) {
            Self::Leaf(entries) => {
                if let Ok(at) = search(entries, key) {
                    entries.remove(at);
                }
            }
            Self::Branch(branch) => {
                let at = branch.place(key);
                Self::remove(&mut branch.children[at], key);
                if branch.children[at].len() < FEW {
                    branch.mend(at);
                }
            }
        }
    }

    /// Takes up what is in the node behind it, of the same level.
    fn append(&mut self, bound: K, behind: Self) {
        match (self, behind) {
            (Self::Leaf(entries), Self::Leaf(more)) => {
                entries.reserve_exact(more.len());
                entries.extend(more);
            }
            (Self::Branch(branch), Self::Branch(more)) => {
                let bounds = branch.bounds.iter().cloned();
                branch.bounds = bounds
                    .chain([bound])
                    .chain(more.bounds.iter().cloned())
                    .collect();
                branch.children.extend(more.children);
            }
            _ => unreachable!("nodes of one level are of one sort"),
        }
    }
}

/// Where a node with one entry too many is cut, after one came in at this place. What comes in order comes in
/// at the end, and no more will come into what is before it.
fn middle(at: usize) -> usize {
    if at == MOST { MOST } else { MOST.div_ceil(2) }
}

// === impl Branch ===

impl<K, V> From<Branch<K, V>> for Arc<Node<K, V>> {
    fn from(branch: Branch<K, V>) -> Self {
        Self::new(Node::Branch(Box::new(branch)))
    }
}

impl<K: Ord + Clone, V: Clone> Branch<K, V> {
    /// The child in which a key is, if it is anywhere.
    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        self.bounds.partition_point(|bound| bound.borrow() <= key)
    }

    /// Takes a node in behind the one at a place.
    fn insert(&mut self, at: usize, bound: K, behind: Arc<Node<K, V>>) -> Grown<K, V> {
        let mut bounds = self.bounds.to_vec();
        bounds.insert(at, bound);
        self.children.reserve_exact(1);
        self.children.insert(at + 1, behind);
        if self.children.len() <= MOST {
            self.bounds = bounds.into();
            return Grown::Inside;
        }
        let middle = middle(at + 1);
        let behind = Self {
            bounds: bounds.drain(middle..).collect(),
            children: self.children.split_off(middle),
        };
        self.children.shrink_to_fit();
        let bound = bounds.pop().expect("there is a bound between two halves");
        self.bounds = bounds.into();
        Grown::Apart(bound, behind.into())
    }

    /// Puts a child that has become small together with one beside it, and takes out an empty one.
    fn mend(&mut self, at: usize) {
        if self.children[at].len() == 0 {
            self.remove(at);
            return;
        }
        let fit = |at: &usize| {
            let pair = self.children.get(*at..at + 2);
            pair.is_some_and(|pair| pair[0].len() + pair[1].len() <= MOST)
        };
        let first = at.checked_sub(1).filter(fit);
        if let Some(first) = first.or_else(|| Some(at).filter(fit)) {
            let bound = self.bounds[first].clone();
            let behind = Arc::unwrap_or_clone(self.remove(first + 1));
            Arc::make_mut(&mut self.children[first]).append(bound, behind);
        }
    }

    /// Takes a child out, with the bound before it, or the one behind the first.
    fn remove(&mut self, at: usize) -> Arc<Node<K, V>> {
        let mut bounds = self.bounds.to_vec();
        if !bounds.is_empty() {
            bounds.remove(at.saturating_sub(1));
        }
        self.bounds = bounds.into();
        self.children.remove(at)
    }
}

// === impl Iter ===

/// Entries in order.
pub(super) struct Iter<'a, K, V> {
    /// What is still to come of each branch above the leaf.
    above: Vec<slice::Iter<'a, Arc<Node<K, V>>>>,
    leaf: slice::Iter<'a, (K, V)>,
}

impl<K, V> Default for Iter<'_, K, V> {
    fn default() -> Self {
        Self {
            above: Vec::new(),
            leaf: slice::Iter::default(),
        }
    }
}

impl<'a, K, V> Iter<'a, K, V> {
    /// Goes down to the first leaf.
    fn descend(&mut self, mut node: &'a Node<K, V>) {
        loop {
            match node {
                Node::Leaf(entries) => {
                    self.leaf = entries.iter();
                    return;
                }
                Node::Branch(branch) => {
                    let mut children = branch.children.iter();
                    let Some(first) = children.next() else {
                        return;
                    };
                    self.above.push(children);
                    node = first;
                }
            }
        }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.leaf.next() {
                return Some((key, value));
            }
            match self.above.last_mut()?.next() {
                Some(node) => self.descend(node),
                None => drop(self.above.pop()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    impl<K: Ord + Clone + std::fmt::Debug, V: Clone> Tree<K, V> {
        /// Its levels, after a look at every node.
        fn checked(&self) -> usize {
            let entries: Vec<_> = self.iter().map(|(key, _)| key).collect();
            assert!(entries.is_sorted_by(|a, b| a < b), "{entries:?}");
            assert_eq!(entries.len(), self.len());
            self.root.checked(None, None, true)
        }
    }

    impl<K: Ord + Clone + std::fmt::Debug, V: Clone> Node<K, V> {
        fn checked(&self, from: Option<&K>, to: Option<&K>, is_root: bool) -> usize {
            assert!(self.len() <= MOST);
            match self {
                Self::Leaf(entries) => {
                    assert!(is_root || !entries.is_empty());
                    for (key, _) in entries {
                        assert!(
                            from.is_none_or(|from| from <= key) && to.is_none_or(|to| key < to)
                        );
                    }
                    1
                }
                Self::Branch(branch) => {
                    assert!(branch.children.len() > usize::from(is_root));
                    assert_eq!(branch.bounds.len() + 1, branch.children.len());
                    let mut froms = vec![from];
                    froms.extend(branch.bounds.iter().map(Some));
                    let mut tos: Vec<_> = branch.bounds.iter().map(Some).collect();
                    tos.push(to);
                    let levels = (branch.children.iter().zip(froms).zip(tos))
                        .map(|((child, from), to)| child.checked(from, to, false));
                    let levels: Vec<_> = levels.collect();
                    assert!(levels.iter().all(|it| *it == levels[0]), "{levels:?}");
                    levels[0] + 1
                }
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Change {
        Insert(u16, u8),
        Remove(u16),
        Replace(u16, u8),
        InsertRow(u16, u16),
        RemoveRow(u16, u16),
    }

    fn change() -> impl Strategy<Value = Change> {
        let key = 0..2_000_u16;
        prop_oneof![
            8 => (key.clone(), any::<u8>()).prop_map(|(key, value)| Change::Insert(key, value)),
            8 => key.clone().prop_map(Change::Remove),
            2 => (key.clone(), any::<u8>()).prop_map(|(key, value)| Change::Replace(key, value)),
            1 => (key.clone(), 0..400_u16).prop_map(|(from, count)| Change::InsertRow(from, count)),
            1 => (key, 0..400_u16).prop_map(|(from, count)| Change::RemoveRow(from, count)),
        ]
    }

    fn apply(tree: &mut Tree<u16, u8>, model: &mut BTreeMap<u16, u8>, change: &Change) {
        match *change {
            Change::Insert(key, value) => {
                tree.insert(key, value);
                model.insert(key, value);
            }
            Change::Remove(key) => assert_eq!(tree.remove(&key), model.remove(&key).is_some()),
            Change::Replace(key, value) => {
                let here = tree.get_mut(&key).map(|it| *it = value).is_some();
                let there = model.get_mut(&key).map(|it| *it = value).is_some();
                assert_eq!(here, there);
            }
            Change::InsertRow(from, count) => {
                for key in from..from + count {
                    apply(tree, model, &Change::Insert(key, 0));
                }
            }
            Change::RemoveRow(from, count) => {
                for key in from..from + count {
                    apply(tree, model, &Change::Remove(key));
                }
            }
        }
    }

    fn same(tree: &Tree<u16, u8>, model: &BTreeMap<u16, u8>) -> bool {
        tree.checked();
        tree.iter().eq(model.iter())
    }

    proptest! {
        #[test]
        fn a_tree_is_the_map_that_the_same_changes_make(
            changes in prop::collection::vec(change(), 0..200),
            asked in prop::collection::vec(0..2_500_u16, 20),
        ) {
            let (mut tree, mut model) = (Tree::new(), BTreeMap::new());
            let mut past = Vec::new();
            for (turn, change) in changes.into_iter().enumerate() {
                if turn % 16 == 0 {
                    past.push((tree.clone(), model.clone()));
                }
                apply(&mut tree, &mut model, &change);
                prop_assert!(same(&tree, &model));
            }
            for key in asked {
                prop_assert_eq!(tree.get(&key), model.get(&key));
                prop_assert!(tree.starting_at(&key).eq(model.range(key..)));
            }
            // What was cloned meanwhile is as it was then.
            prop_assert!(past.iter().all(|(tree, model)| same(tree, model)));
        }
    }

    #[test]
    fn what_comes_in_order_fills_every_leaf() {
        let mut tree = Tree::new();
        for key in 0..MOST.pow(3) {
            tree.insert(key, ());
        }
        assert_eq!(tree.checked(), 3);
    }

    #[test]
    fn an_emptied_tree_is_one_leaf() {
        for order in [0, 1] {
            let mut tree = Tree::new();
            for key in 0..5_000_u16 {
                tree.insert(key, ());
            }
            for key in 0..5_000_u16 {
                let key = if order == 0 { key } else { 4_999 - key };
                assert!(tree.remove(&key));
                tree.checked();
            }
            assert_eq!((tree.checked(), tree.len()), (1, 0));
        }
    }
}
