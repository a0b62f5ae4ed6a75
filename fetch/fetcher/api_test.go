package fetcher_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// mostMethods is how many methods an exported interface declares itself at most. It may
// be composed of several such.
const mostMethods = 10

// TestExportedInterfaces: in the whole module no exported interface declares more than
// mostMethods methods, or embeds an unexported one, and no exported struct embeds an
// unexported interface, whose methods would be its own.
func TestExportedInterfaces(t *testing.T) {
	dirs, interfaces := map[string][]*ast.TypeSpec{}, 0
	err := filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				for _, spec := range g.Specs {
					dirs[filepath.Dir(name)] = append(dirs[filepath.Dir(name)], spec.(*ast.TypeSpec))
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, types := range dirs {
		unexported := map[string]bool{} // interfaces of the package
		for _, spec := range types {
			if _, ok := spec.Type.(*ast.InterfaceType); ok && !spec.Name.IsExported() {
				unexported[spec.Name.Name] = true
			}
		}
		for _, spec := range types {
			if !spec.Name.IsExported() {
				continue
			}
			var fields *ast.FieldList
			switch of := spec.Type.(type) {
			case *ast.InterfaceType:
				fields, interfaces = of.Methods, interfaces+1
			case *ast.StructType:
				fields = of.Fields
			default:
				continue
			}
			methods := 0
			for _, f := range fields.List {
				if name, ok := f.Type.(*ast.Ident); ok && f.Names == nil && unexported[name.Name] {
					t.Errorf("%s: %s embeds the unexported interface %s", dir, spec.Name.Name, name.Name)
				}
				if _, ok := f.Type.(*ast.FuncType); ok {
					methods += len(f.Names)
				}
			}
			if _, ok := spec.Type.(*ast.InterfaceType); ok && methods > mostMethods {
				t.Errorf("%s: %s has %d methods, must be at most %d", dir, spec.Name.Name, methods, mostMethods)
			}
		}
	}
	if interfaces < 20 {
		t.Errorf("only %d exported interfaces were found", interfaces)
	}
}
