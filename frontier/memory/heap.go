package memory

// node is what a heap orders. It remembers its place, so that it can be moved
// and removed wherever it stands.
type node[T any] interface {
	before(T) bool
	moved(int) // its place in the heap changed
}

// heap is a binary heap of nodes, the first at 0.
type heap[T node[T]] []T

func (h *heap[T]) push(x T) {
	*h = append(*h, x)
	x.moved(len(*h) - 1)
	h.up(len(*h) - 1)
}

// remove takes the node at i out.
func (h *heap[T]) remove(i int) {
	s := *h
	last := len(s) - 1
	s[i], s[last] = s[last], s[i]
	s[i].moved(i)
	var none T
	s[last] = none
	*h = s[:last]
	if i < last {
		h.fix(i)
	}
	if cap(s) > 1024 && last < cap(s)/4 {
		*h = append(make([]T, 0, cap(s)/2), s[:last]...)
	}
}

// fix restores the order after the node at i changed.
func (h *heap[T]) fix(i int) {
	if !h.down(i) {
		h.up(i)
	}
}

func (h heap[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].before(h[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h heap[T]) down(i int) bool {
	start := i
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(h[i]) {
			break
		}
		h.swap(i, child)
		i = child
	}
	return i > start
}

func (h heap[T]) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].moved(i)
	h[j].moved(j)
}

// each calls f for all nodes that match, in no order. A node is only looked at
// when its parent matched, so match must hold for a parent whenever it holds
// for a child.
func (h heap[T]) each(i int, match func(T) bool, f func(T)) {
	if i >= len(h) || !match(h[i]) {
		return
	}
	f(h[i])
	h.each(2*i+1, match, f)
	h.each(2*i+2, match, f)
}
