"""A bin of `java.util.HashMap` that contains so many keys that Java stores them in a red-black tree.

Java iterates over such a bin in the order of a linked list that it maintains beside the tree. A new key is
inserted into the list after its parent in the tree, and the root moves to the front of the list after each
change. The order therefore depends on the shape of the tree, so this class must rebalance it as Java does:
with the insertion and deletion of Cormen, Leiserson, Rivest and Stein.
"""


class _Node:
    __slots__ = ("hash", "key", "left", "parent", "red", "right")

    def __init__(self, key: int, spread_hash: int) -> None:
        self.key = key
        self.hash = spread_hash
        self.red = True
        self.left: _Node | None = None
        self.right: _Node | None = None
        self.parent: _Node | None = None

    def precedes(self, other: "_Node") -> bool:
        return self.hash < other.hash if self.hash != other.hash else self.key < other.key


class TreeBin:
    """The keys of one bin, at least one. Keys are numbers whose order is the order of Java's keys."""

    __slots__ = ("_root", "_sequence")

    def __init__(self, entries: list[tuple[int, int]]) -> None:
        """`entries` are the keys and their spread hashes, in the order of the bin that becomes a tree."""
        self._sequence = [_Node(key, spread_hash) for key, spread_hash in entries]
        self._root = self._sequence[0]
        self._root.red = False
        for node in self._sequence[1:]:
            self._attach(node, self._parent_for(node))
        self._move_root_to_front()

    def entries(self) -> list[tuple[int, int]]:
        """Return the keys and their spread hashes, in Java's iteration order."""
        return [(node.key, node.hash) for node in self._sequence]

    def ordered_keys(self) -> list[int]:
        return [node.key for node in self._sequence]

    def put(self, key: int, spread_hash: int) -> None:
        """Add a key that the bin does not contain."""
        node = _Node(key, spread_hash)
        parent = self._parent_for(node)
        self._sequence.insert(self._sequence.index(parent) + 1, node)
        self._attach(node, parent)
        self._move_root_to_front()

    def remove(self, key: int) -> bool:
        """Remove a key of the bin, and return whether the bin is still a tree in Java."""
        node = next(node for node in self._sequence if node.key == key)
        self._sequence.remove(node)
        left = self._root.left
        if left is None or self._root.right is None or left.left is None:
            return False
        if node.left is not None and node.right is not None:
            node = self._replaced_by_successor(node, node.right)
        child = node.left or node.right
        if child is not None:
            self._put_in_place_of(node, child)
            if not node.red:
                self._restore_black_height(child)
        else:
            if not node.red:
                self._restore_black_height(node)
            self._detach_leaf(node)
        self._move_root_to_front()
        return True

    def _parent_for(self, node: _Node) -> _Node:
        below: _Node | None = self._root
        parent = self._root
        while below is not None:
            parent = below
            below = below.left if node.precedes(below) else below.right
        return parent

    def _attach(self, node: _Node, parent: _Node) -> None:
        node.parent = parent
        if node.precedes(parent):
            parent.left = node
        else:
            parent.right = node
        self._separate_red_nodes(node)

    def _separate_red_nodes(self, node: _Node) -> None:
        """Restore the rule that a red node has a black parent, after `node` was attached."""
        while True:
            parent = node.parent
            if parent is None:
                node.red = False
                return
            grandparent = parent.parent
            if not parent.red or grandparent is None:
                return
            on_left = parent is grandparent.left
            uncle = grandparent.right if on_left else grandparent.left
            if uncle is not None and uncle.red:
                uncle.red = parent.red = False
                grandparent.red = True
                node = grandparent
                continue
            if node is (parent.right if on_left else parent.left):
                self._rotate(parent, on_left)
                parent = node
            parent.red = False
            grandparent.red = True
            self._rotate(grandparent, not on_left)
            return

    def _replaced_by_successor(self, node: _Node, successor: _Node) -> _Node:
        """Move the next key into `node`, and return the node that contained it and has no left child."""
        while successor.left is not None:
            successor = successor.left
        node.key, node.hash = successor.key, successor.hash
        self._sequence[self._sequence.index(successor)] = node
        return successor

    def _restore_black_height(self, node: _Node) -> None:
        """Restore the rule that all paths contain equally many black nodes: paths to `node` lack one."""
        while True:
            parent = node.parent
            if parent is None or node.red:
                node.red = False
                return
            on_left = node is parent.left
            sibling = parent.right if on_left else parent.left
            if sibling is not None and sibling.red:
                sibling.red = False
                parent.red = True
                self._rotate(parent, on_left)
                sibling = parent.right if on_left else parent.left
            if sibling is None:
                node = parent
                continue
            near, far = (sibling.left, sibling.right) if on_left else (sibling.right, sibling.left)
            if far is None or not far.red:
                if near is None or not near.red:
                    sibling.red = True
                    node = parent
                    continue
                near.red = False
                sibling.red = True
                self._rotate(sibling, not on_left)
                sibling, far = near, sibling
            sibling.red = parent.red
            far.red = parent.red = False
            self._rotate(parent, on_left)
            return

    def _rotate(self, node: _Node, to_left: bool) -> None:
        above = node.right if to_left else node.left
        assert above is not None
        inner = above.left if to_left else above.right
        self._put_in_place_of(node, above)
        if to_left:
            node.right = inner
            above.left = node
        else:
            node.left = inner
            above.right = node
        if inner is not None:
            inner.parent = node
        node.parent = above

    def _put_in_place_of(self, old: _Node, new: _Node) -> None:
        parent = old.parent
        new.parent = parent
        if parent is None:
            self._root = new
        elif parent.left is old:
            parent.left = new
        else:
            parent.right = new

    def _detach_leaf(self, node: _Node) -> None:
        parent = node.parent
        assert parent is not None
        if parent.left is node:
            parent.left = None
        else:
            parent.right = None

    def _move_root_to_front(self) -> None:
        if self._sequence[0] is not self._root:
            self._sequence.remove(self._root)
            self._sequence.insert(0, self._root)
