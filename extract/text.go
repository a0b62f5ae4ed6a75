package extract

// appendText adds to the visible text, white space folded. It is decoded when
// all of it is there.
func (c *collector) appendText(b []byte) {
	for _, ch := range b {
		switch {
		case isSpace(ch):
			c.gap = true
			continue
		case ch == 0 || len(c.visible) >= c.cfg.MaxText:
			continue
		case c.gap:
			if c.gap = false; len(c.visible) > 0 {
				c.visible = append(c.visible, ' ')
			}
		}
		c.visible = append(c.visible, ch)
	}
}

// finishText decodes the visible text.
func (c *collector) finishText() {
	if len(c.visible) >= c.cfg.MaxText { // the bound may have cut a character
		c.visible = wholeRunes(c.visible)
	}
	if len(c.visible) > 0 {
		c.facts.Text = append(c.facts.Text[:0], c.dec.text(c.visible)...)
		c.facts.Text = trimTo(c.facts.Text, 0, c.cfg.MaxText)
		c.dec.release()
	}
}
