package merge

// handed holds the blocks that a source handed out and that are still valid by
// the contract of Source: the newest two.
type handed [2]*Block

// turn is called at the start of every Next: the block before the last one ends
// its life.
func (h *handed) turn() {
	releaseBlock(h[1])
	h[1], h[0] = h[0], nil
}

func (h *handed) release() {
	releaseBlock(h[0])
	releaseBlock(h[1])
	*h = handed{}
}

func releaseBlock(b *Block) {
	if b == nil {
		return
	}
	for _, c := range b.Columns {
		if c != nil {
			c.Release()
		}
	}
}
