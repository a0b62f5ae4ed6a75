// Package extract finds links and page facts in a stream of bytes.
package extract

// Kind says where in a page a link stood.
type Kind uint8

// Link is one link as the page wrote it. Its memory is valid during the call
// that hands it over.
type Link struct {
	Kind     Kind
	Raw      []byte // entities decoded, UTF-8; not resolved
	Rel      []byte // rel attribute as written
	NoFollow bool   // rel nofollow, ugc or sponsored
}
