package memory

// Repaired says what a repair found.
type Repaired struct {
	Damage []Damage
}

// Damage is a range of a file that could not be read.
type Damage struct {
	File   string
	Offset int64
	Bytes  int64
	What   string
}
