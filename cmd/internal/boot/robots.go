package boot

import (
	"time"

	"seine/extract/preference"
	"seine/fetch/robots"
	"seine/frontier/ask"
)

// ReadRobots is ask.WhyQuery.Robots: it reads rules as fetchers store them.
func ReadRobots(stored, target []byte, to *ask.Robots) error {
	rules, agent, read, err := robots.LoadKept(stored)
	if err != nil {
		return err
	}
	v := rules.Explain(target)
	to.Allowed, to.Agent, to.Group, to.Rule, to.Line, to.Delay = v.Allowed, agent, v.Group, v.Rule, v.Line, ask.Span(rules.Delay())
	var said preference.Set
	rules.EachUsage(target, said.AddRule)
	purpose, err := preference.ParsePurpose(to.Purpose)
	if err != nil {
		return err
	}
	if to.Refuses = said.Why(said.Refused(purpose)); !said.IsEmpty() {
		to.Preferences = said.AppendJSON(nil)
	}
	if !read.IsZero() {
		to.Age = ask.Span(max(0, time.Since(read)))
	}
	return nil
}
