package boot

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"seine/extract/fields"
)

// FieldRules reads the rules under fields: of a YAML file; names of fields of a
// record, which may stand between them, are passed over. No path is no rules,
// and neither is a nil Set. Errors name file and line.
func FieldRules(path string) (*fields.Set, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, Usage("fields: %w", err)
	}
	doc, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, Usage("fields: %s: %s", path, yaml.FormatError(err, false, false))
	}
	var rules []fields.Rule
	var faults []error
	for _, node := range fieldNodes(doc) {
		at := fmt.Sprintf("%s:%d", path, node.GetToken().Position.Line)
		var r fields.Rule // its keys are the names of its fields in small letters
		switch n := node.(type) {
		case *ast.StringNode: // a field of the record
			continue
		case *ast.MappingNode:
			at = fmt.Sprintf("%s:%d", path, n.Values[0].Key.GetToken().Position.Line)
		case *ast.MappingValueNode:
			at = fmt.Sprintf("%s:%d", path, n.Key.GetToken().Position.Line)
		default:
			faults = append(faults, fmt.Errorf("fields: %s: this is neither a name nor a rule", at))
			continue
		}
		if err := yaml.NodeToValue(node, &r, yaml.Strict()); err != nil {
			first, _, _ := strings.Cut(yaml.FormatError(err, false, false), "\n")
			faults = append(faults, fmt.Errorf("fields: %s: %s", at, strings.TrimSpace(first)))
			continue
		}
		r.At = at
		rules = append(rules, r)
	}
	set, err := fields.Compile(rules)
	if err = errors.Join(append(faults, err)...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	if len(rules) == 0 {
		return nil, nil
	}
	return set, nil
}

// fieldNodes are the elements of the list under fields:.
func fieldNodes(doc *ast.File) []ast.Node {
	for _, d := range doc.Docs {
		var pairs []*ast.MappingValueNode
		switch body := d.Body.(type) {
		case *ast.MappingNode:
			pairs = body.Values
		case *ast.MappingValueNode:
			pairs = []*ast.MappingValueNode{body}
		}
		for _, p := range pairs {
			if p.Key.String() != "fields" {
				continue
			}
			if list, ok := p.Value.(*ast.SequenceNode); ok {
				return list.Values
			}
		}
	}
	return nil
}
