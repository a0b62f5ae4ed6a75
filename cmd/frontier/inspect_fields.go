package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"seine/cmd/internal/boot"
	"seine/extract"
	"seine/extract/fields"
	"seine/frontier/canon"
)

type inspectFieldsCmd struct {
	Rules string `required:"" placeholder:"FILE" help:"YAML file with the rules under fields:, as for the fetcher."`
	Base  string `default:"http://localhost/" placeholder:"URL" help:"URL of the page; its site decides which rules apply (${default})."`
	response
	document
}

// Run shows what each rule makes of a page, and fails when a required field is
// missing.
func (c *inspectFieldsCmd) Run(env *boot.Env) error {
	rules, err := boot.FieldRules(c.Rules)
	if err != nil {
		return err
	}
	base, err := parse(c.Base)
	if err != nil {
		return err
	}
	doc, err := c.doc(base)
	if err != nil {
		return err
	}
	page := everyLink()
	page.Reset(doc, func(*extract.Found) {})
	in, done, err := c.open(env)
	if err != nil {
		return err
	}
	defer done()
	var body bytes.Buffer
	if _, err := io.Copy(io.MultiWriter(&body, page), in); err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	if err := page.Close(); err != nil {
		return err
	}
	own := rules.For(canon.NewSites(canon.ByDomain).Of(base.Host()).Name, string(base.Host()))
	if own == nil {
		return boot.Usage("%s has no rules for %s", c.Rules, base.Host())
	}
	read, err := fields.NewPage(body.Bytes(), page.Facts().Charset, base)
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	result := own.Explain(read)
	err = printLines(env, func(print func(any)) error {
		for _, t := range result.Tried {
			print(t)
		}
		return nil
	})
	if err == nil && len(result.Missing) > 0 {
		err = fmt.Errorf("inspect: required fields are missing: %s", strings.Join(result.Missing, ", "))
	}
	return err
}
