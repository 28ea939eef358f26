package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/paimon/schema"
)

// definitionFile reads a schema file or a part of one.
func definitionFile(name string) (tideline.Definition, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return tideline.Definition{}, err
	}
	return definition(data, filepath.Base(name))
}

// definition completes what a hand-written schema leaves out and reads it by the
// rules of a schema file.
func definition(data []byte, name string) (tideline.Definition, error) {
	var d tideline.Definition
	in := json.NewDecoder(bytes.NewReader(data))
	in.UseNumber()
	var root map[string]any
	if err := in.Decode(&root); err != nil {
		return d, fmt.Errorf("%s is no JSON object: %w", name, err)
	}
	defaults := map[string]any{"version": schema.CurrentVersion, "id": 0, "partitionKeys": []any{}, "primaryKeys": []any{}, "options": map[string]any{}}
	for key, value := range defaults {
		if _, ok := root[key]; !ok {
			root[key] = value
		}
	}
	n := numbering{}
	n.fields(root["fields"], false)
	if n.missing {
		n.next = 0
		n.fields(root["fields"], true)
		root["highestFieldId"] = max(n.next-1, 0)
	} else if _, ok := root["highestFieldId"]; !ok {
		root["highestFieldId"] = n.highest
	}
	complete, err := json.Marshal(root)
	if err != nil {
		return d, err
	}
	s, err := schema.Parse(complete, name+" (completed)")
	if err != nil {
		return d, err
	}
	d = tideline.Definition{Fields: s.Fields, PrimaryKey: s.PrimaryKeys, PartitionBy: s.PartitionKeys, Options: s.Options}
	if s.Comment != nil {
		d.Comment = *s.Comment
	}
	return d, nil
}

// numbering gives field ids depth-first where they are missing.
type numbering struct {
	missing bool
	next    int
	highest json.Number
}

func (n *numbering) fields(list any, assign bool) {
	items, _ := list.([]any)
	for _, item := range items {
		f, ok := item.(map[string]any)
		if !ok {
			continue // the parser says what is wrong
		}
		if id, ok := f["id"].(json.Number); !ok {
			n.missing = true
		} else if len(id) > len(n.highest) || len(id) == len(n.highest) && id > n.highest {
			n.highest = id
		}
		if assign {
			f["id"] = n.next
			n.next++
		}
		n.types(f["type"], assign)
	}
}

func (n *numbering) types(t any, assign bool) {
	object, ok := t.(map[string]any)
	if !ok {
		return
	}
	n.types(object["key"], assign)
	n.types(object["element"], assign)
	n.types(object["value"], assign)
	n.fields(object["fields"], assign)
}
