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
	"seine/fetch/wall"
)

// FieldRules reads the rules under fields: of a YAML file; names of fields of a
// record, which may stand between them, are passed over. No path is no rules,
// and neither is a nil Set. Errors name file and line.
func FieldRules(path string) (*fields.Set, error) {
	rules, faults, err := readRules(path, "fields", func(r *fields.Rule, at string) { r.At = at })
	if err != nil {
		return nil, err
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

// WallRules adds the rules under wall_rules: of a YAML file to those of package wall. No path
// adds none. Errors name file and line.
func WallRules(path string) (*wall.Set, error) {
	rules, faults, err := readRules(path, wallKey, func(r *wall.Rule, at string) { r.At = at })
	if err != nil {
		return nil, err
	}
	set, err := wall.Compile(rules)
	if err = errors.Join(append(faults, err)...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	return set, nil
}

// wallKey is the key of rules of walls.
const wallKey = "wall-rules"

// readRules reads the rules under a key of a YAML file, whose keys are the names of the
// fields of R in small letters, and places each. Between rules of fields names may stand.
// faults are those of single rules.
func readRules[R any](path, key string, place func(r *R, at string)) (rules []R, faults []error, err error) {
	if path == "" {
		return nil, nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, Usage("%s: %w", key, err)
	}
	doc, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, nil, Usage("%s: %s: %s", key, path, yaml.FormatError(err, false, false))
	}
	for _, node := range listNodes(doc, key) {
		at := placeOf(path, node)
		var r R
		switch node.(type) {
		case *ast.MappingNode, *ast.MappingValueNode:
		default:
			if _, name := node.(*ast.StringNode); !name || key != "fields" {
				what := map[bool]string{true: "neither a name nor a rule", false: "no rule"}[key == "fields"]
				faults = append(faults, fmt.Errorf("%s: %s: this is %s", key, at, what))
			}
			continue
		}
		if err := yaml.NodeToValue(node, &r, yaml.Strict()); err != nil {
			first, _, _ := strings.Cut(yaml.FormatError(err, false, false), "\n")
			faults = append(faults, fmt.Errorf("%s: %s: %s", key, at, strings.TrimSpace(first)))
			continue
		}
		place(&r, at)
		rules = append(rules, r)
	}
	return rules, faults, nil
}

// placeOf is file and line of an element of a list.
func placeOf(path string, node ast.Node) string {
	token := node.GetToken()
	switch n := node.(type) {
	case *ast.MappingNode:
		if len(n.Values) > 0 {
			token = n.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		token = n.Key.GetToken()
	}
	return fmt.Sprintf("%s:%d", path, token.Position.Line)
}

// listNodes are the elements of the list under a key.
func listNodes(doc *ast.File, key string) []ast.Node {
	for _, d := range doc.Docs {
		var pairs []*ast.MappingValueNode
		switch body := d.Body.(type) {
		case *ast.MappingNode:
			pairs = body.Values
		case *ast.MappingValueNode:
			pairs = []*ast.MappingValueNode{body}
		}
		for _, p := range pairs {
			if strings.ReplaceAll(p.Key.String(), "_", "-") != key {
				continue
			}
			value := p.Value
			if anchor, ok := value.(*ast.AnchorNode); ok {
				value = anchor.Value
			}
			if list, ok := value.(*ast.SequenceNode); ok {
				return list.Values
			}
		}
	}
	return nil
}
