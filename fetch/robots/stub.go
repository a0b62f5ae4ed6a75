package robots

import "time"

type Rules struct{}

func Parse(body []byte, agent string) *Rules  { return &Rules{} }
func Load(b []byte) (*Rules, error)           { return &Rules{}, nil }
func (r *Rules) Append(dst []byte) []byte     { return dst }
func (r *Rules) Allowed(target []byte) bool   { return true }
func (r *Rules) Delay() time.Duration         { return 0 }
func (r *Rules) Sitemaps() []string           { return nil }
