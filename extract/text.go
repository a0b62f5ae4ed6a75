package extract

// appendText adds to the visible text, white space folded. Entities are
// decoded when all of it is there.
func (c *collector) appendText(b []byte) {
	for _, ch := range b {
		if isSpace(ch) {
			c.gap = true
			continue
		}
		if c.gap {
			c.gap = false
			if len(c.facts.Text) > 0 {
				c.facts.Text = append(c.facts.Text, ' ')
			}
		}
		if len(c.facts.Text) >= c.cfg.MaxText {
			return
		}
		c.facts.Text = append(c.facts.Text, ch)
	}
}
