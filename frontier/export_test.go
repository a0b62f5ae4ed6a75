package frontier

// ParseLetter lets tests of other packages read dead letters as they are stored.
func ParseLetter(raw, cause string) (DeadLetter, error) { return parseLetter(raw, cause) }
