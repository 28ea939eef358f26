package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// source is one parsed file.
type source struct {
	name string // slash-separated below the module root
	pkg  string // directory of name, "." for the root
	test bool
	set  *token.FileSet
	tree *ast.File
	// imports maps the name that the file uses to the path it imports.
	imports map[string]string
}

func parse(name string, text any) (*source, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, name, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	s := &source{name: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), set: set, tree: tree,
		imports: map[string]string{}}
	for _, spec := range tree.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		used := defaultName(imported)
		if spec.Name != nil {
			used = spec.Name.Name
		}
		s.imports[used] = imported
	}
	return s, nil
}

// defaultName guesses a package's name from its path, which holds for every path
// that the rules name.
func defaultName(imported string) string {
	base := path.Base(imported)
	if len(base) > 1 && base[0] == 'v' && strings.Trim(base[1:], "0123456789") == "" {
		base = path.Base(path.Dir(imported))
	}
	return base
}

// matches tells whether a package fits a pattern.
func matches(pattern, pkg string) bool {
	exact, isExact := strings.CutPrefix(pattern, "=")
	below, isBelow := strings.CutSuffix(pattern, "/*")
	switch {
	case pattern == "*":
		return true
	case isExact || pattern == ".":
		return pkg == exact
	case isBelow:
		return strings.HasPrefix(pkg, below+"/")
	}
	return pkg == pattern || strings.HasPrefix(pkg, pattern+"/")
}

func matchesAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, pkg) })
}

// within tells whether an import path is parent or lies below it.
func within(parent, imported string) bool {
	return imported == parent || strings.HasPrefix(imported, parent+"/")
}

// check returns every breach of the rules in one file, as sentences.
func check(s *source) []string {
	if s.test {
		return s.uses(waitNames, "a test waits for an event, not for time to pass")
	}
	found := s.checkArrows()
	for _, spec := range s.tree.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value) // parse has seen it
		// A blank import pins a version and uses nothing.
		blank := spec.Name != nil && spec.Name.Name == "_"
		if within(protoactor, imported) && !blank && !matches("actors", s.pkg) && !matches("bench", s.pkg) {
			found = append(found, s.at(spec.Pos(), "imports %s, which actors alone may", imported))
		}
		if imported == "C" {
			found = append(found, s.at(spec.Pos(), "uses cgo"))
		}
	}
	if matchesAny(pure, s.pkg) {
		found = append(found, s.checkPurity()...)
	}
	if _, allowed := lockedFiles[s.name]; !allowed && matchesAny(unlocked, s.pkg) {
		found = append(found, s.uses(lockNames, "state here has one owner, which needs no lock; an exception takes a line and a reason in lockedFiles")...)
	}
	return found
}

func (s *source) checkArrows() []string {
	var found []string
	var allowed []string
	known := false
	for _, line := range arrows {
		if matches(line.from, s.pkg) {
			allowed, known = line.to, true
			break
		}
	}
	if !known {
		return []string{fmt.Sprintf("%s: package %q has no line in the table of arrows", s.name, s.pkg)}
	}
	for _, spec := range s.tree.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value) // parse has seen it
		if !within(module, imported) {
			continue
		}
		to := "."
		if imported != module {
			to = strings.TrimPrefix(imported, module+"/")
		}
		if !matchesAny(allowed, to) {
			found = append(found, s.at(spec.Pos(), "package %q may not import %q", s.pkg, to))
		}
	}
	return found
}

func (s *source) checkPurity() []string {
	var found []string
	for _, spec := range s.tree.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value) // parse has seen it
		for _, impure := range impureImports {
			if within(impure, imported) {
				found = append(found, s.at(spec.Pos(), "imports %s; pure code gets it handed in", imported))
			}
		}
	}
	// Waiting by a group for what a runner started is fine, its Go is not; a file
	// without a group may call the Go of a runner.
	groups := len(s.uses(groupNames, "")) > 0
	ast.Inspect(s.tree, func(n ast.Node) bool {
		starts := false
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = true
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			starts = ok && groups && sel.Sel.Name == "Go"
		}
		if starts {
			found = append(found, s.at(n.Pos(), "starts a goroutine; pure code gets a runner handed in"))
		}
		return true
	})
	return append(found, s.uses(impureNames, "pure code gets clocks and randomness handed in")...)
}

// uses reports every mention of the given names, called or not, and every dot
// import of their packages, which would hide one.
func (s *source) uses(names map[string][]string, why string) []string {
	var found []string
	if imported := s.imports["."]; names[imported] != nil {
		found = append(found, fmt.Sprintf("%s: dot import of %s hides names: %s", s.name, imported, why))
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		// The parser resolves local names; a package's name stays unresolved.
		if !ok || x.Obj != nil {
			return true
		}
		if slices.Contains(names[s.imports[x.Name]], sel.Sel.Name) {
			found = append(found, s.at(sel.Pos(), "%s.%s: %s", x.Name, sel.Sel.Name, why))
		}
		return true
	})
	return found
}

func (s *source) at(pos token.Pos, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", s.name, s.set.Position(pos).Line, fmt.Sprintf(format, args...))
}
