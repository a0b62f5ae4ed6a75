package extract

// styleAttr hands on the links of a style attribute.
func (c *collector) styleAttr(b []byte) {}
