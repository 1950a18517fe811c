// SPDX-License-Identifier: Apache-2.0

// Package sqlscan finds the tables that a piece of SQL names, without understanding the rest of it.
//
// It reads tokens, not grammar: a name counts when it stands where a table can stand (after FROM, JOIN, INTO,
// UPDATE, USING, TABLE and in the comma lists of those). It errs on the side of finding too much; it does not look
// into literals, so SQL that is put together at run time stays invisible to it.
package sqlscan

// Ref is a table name in a statement.
type Ref struct {
	Name string
	// Line counts from 1 in the text given.
	Line int
	// CTE marks the name of a common table expression; within its own body the real table may be meant.
	CTE bool
}

// Relations lists the tables that the statements name, in order. References to a common table expression of the
// same statement are left out, its definition is listed.
func Relations(sql string) []Ref {
	var out []Ref
	var statement []token
	flush := func() {
		out = append(out, relations(statement)...)
		statement = nil
	}
	for _, t := range tokens(sql) {
		if t.is(";") {
			flush()
			continue
		}
		statement = append(statement, t)
	}
	flush()
	return out
}

// level is the state inside one pair of parentheses.
type level struct {
	// list says that a comma is followed by another table.
	list bool
	// expect says that the next name is a table; call, that a parenthesis after it makes it a function.
	expect, call bool
	// noFrom marks the arguments of EXTRACT and its like, whose FROM is no clause.
	noFrom bool
}

func relations(ts []token) []Ref {
	ctes := map[string]bool{}
	var out []Ref
	for i := range ts {
		if name, ok := cte(ts, i); ok {
			ctes[name] = true
			out = append(out, Ref{Name: name, Line: ts[i].line, CTE: true})
		}
	}
	s := &scan{ts: ts, levels: []level{{}}}
	for s.at < len(ts) {
		if name, line, ok := s.step(); ok && !ctes[name] {
			out = append(out, Ref{Name: name, Line: line})
		}
	}
	return out
}

// cte recognises "WITH name AS (" and ", name (columns) AS MATERIALIZED (".
func cte(ts []token, i int) (string, bool) {
	if i == 0 || !ts[i].isName() || !ts[i-1].is("with", "recursive", ",") || ts[i].is("recursive") {
		return "", false
	}
	j := i + 1
	if j < len(ts) && ts[j].is("(") {
		for j < len(ts) && !ts[j].is(")") {
			j++
		}
		j++
	}
	if j >= len(ts) || !ts[j].is("as") {
		return "", false
	}
	j++
	for j < len(ts) && ts[j].is("not", "materialized") {
		j++
	}
	return ts[i].text, j < len(ts) && ts[j].is("(")
}

type scan struct {
	ts     []token
	at     int
	levels []level
}

func (s *scan) top() *level { return &s.levels[len(s.levels)-1] }

func (s *scan) tokenAt(i int) token {
	if i < 0 || i >= len(s.ts) {
		return token{kind: literal}
	}
	return s.ts[i]
}

// step consumes at least one token and returns the table it found there.
func (s *scan) step() (name string, line int, found bool) {
	t, top := s.tokenAt(s.at), s.top()
	prev, next := s.tokenAt(s.at-1), s.tokenAt(s.at+1)
	s.at++
	switch {
	case t.is("("):
		inner := level{noFrom: prev.is("extract", "substring", "trim", "overlay", "position")}
		if top.expect {
			// A parenthesised join or a subquery; a subquery's SELECT resets this.
			inner.list, inner.expect, inner.call = true, true, true
			top.expect = false
		}
		s.levels = append(s.levels, inner)
	case t.is(")"):
		if len(s.levels) > 1 {
			s.levels = s.levels[:len(s.levels)-1]
		}
	case t.is(","):
		top.expect, top.call = top.list, true
	case t.is("from"):
		if !top.noFrom && !prev.is("distinct") {
			top.list, top.expect, top.call = true, true, true
		}
	case t.is("join"):
		top.expect, top.call = true, true
	case t.is("using"):
		if !next.is("(") {
			top.list, top.expect, top.call = true, true, true
		}
	case t.is("into", "references"):
		top.list, top.expect, top.call = false, true, false
	case t.is("update"):
		if !prev.is("for", "key", "do", "on", "then", "or", "before", "after") && !next.is("set") {
			top.list, top.expect, top.call = false, true, false
		}
	case t.is("truncate", "table"):
		top.list, top.expect, top.call = true, true, false
	case t.is("lock", "copy") && s.at == 1:
		top.list, top.expect, top.call = t.is("lock"), true, false
	case t.is("only", "lateral", "if", "not", "exists"):
		// Words between the clause and the name.
	case t.is("select", "with", "where", "group", "order", "having", "limit", "offset", "fetch", "set", "returning",
		"values", "union", "intersect", "except", "window", "for", "when", "on"):
		top.expect = false
		top.list = top.list && t.is("on")
	case t.isName() && top.expect:
		return s.tableName(t)
	}
	return "", 0, false
}

// tableName reads a possibly qualified name; the last part is the table.
func (s *scan) tableName(t token) (string, int, bool) {
	top := s.top()
	top.expect = false
	for s.tokenAt(s.at).is(".") && s.tokenAt(s.at+1).isName() {
		t = s.tokenAt(s.at + 1)
		s.at += 2
	}
	if top.call && s.tokenAt(s.at).is("(") {
		return "", 0, false
	}
	return t.text, t.line, true
}

// Call is the call of a function, or something that looks like one.
type Call struct {
	Name string
	// Line counts from 1 in the text given.
	Line int
}

// Calls lists the names before an opening parenthesis. Columns of an INSERT and types with a length are among them:
// compare with the functions you know.
func Calls(sql string) []Call {
	var out []Call
	ts := tokens(sql)
	for i := 0; i+1 < len(ts); i++ {
		if ts[i].isName() && ts[i+1].is("(") {
			out = append(out, Call{Name: ts[i].text, Line: ts[i].line})
		}
	}
	return out
}

// Function is a function or procedure of the schema.
type Function struct {
	Name string
	// Body is its text, beginning at Line of the migration; empty for a body in standard SQL without quotes.
	Body string
	Line int
}

// Schema is what a migration creates.
type Schema struct {
	Tables    []string
	Functions []Function
}

// Created lists the tables and functions that the DDL creates. Partitions count as part of their table; temporary
// tables are left out.
func Created(ddl string) Schema {
	var out Schema
	ts := tokens(ddl)
	for i := 0; i < len(ts); i++ {
		if !ts[i].is("create") {
			continue
		}
		j, temporary := i+1, false
		for j < len(ts) && ts[j].is("or", "replace", "unlogged", "temp", "temporary", "global", "local") {
			temporary = temporary || ts[j].is("temp", "temporary")
			j++
		}
		if j >= len(ts) {
			break
		}
		object := ts[j]
		j++
		for j < len(ts) && ts[j].is("if", "not", "exists") {
			j++
		}
		name, end := qualified(ts, j)
		switch {
		case name == "" || temporary:
		case object.is("table") && !(end < len(ts) && ts[end].is("partition")):
			out.Tables = append(out.Tables, name)
		case object.is("function", "procedure"):
			out.Functions = append(out.Functions, function(name, ts[end:]))
		}
	}
	return out
}

func qualified(ts []token, i int) (string, int) {
	if i >= len(ts) || !ts[i].isName() {
		return "", i
	}
	name := ts[i].text
	i++
	for i+1 < len(ts) && ts[i].is(".") && ts[i+1].isName() {
		name = ts[i+1].text
		i += 2
	}
	return name, i
}

// function finds the quoted body behind the head of a function.
func function(name string, ts []token) Function {
	f := Function{Name: name}
	for i, t := range ts {
		if t.is(";") {
			break
		}
		if t.is("as") && i+1 < len(ts) && ts[i+1].kind == literal {
			f.Body, f.Line = ts[i+1].text, ts[i+1].line
		}
	}
	return f
}
