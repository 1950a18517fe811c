// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Source is where the value of a key came from.
type Source string

// The sources that have no name of their own. Values of a file carry "file <path>", those
// of the environment "env <NAME>", those of the command line "flag --<name>".
const (
	SourceDefault Source = "default"
	SourceCheck   Source = "check"
)

// Sources is everything Load reads. It reads nothing by itself, so that a test can load
// without touching the process.
type Sources struct {
	// FileName and File are the YAML file; an empty name means that there is none.
	FileName string
	File     []byte
	// Environ is what os.Environ gives.
	Environ []string
	// Flags are keys set on the command line, by name of the key.
	Flags map[string]string
}

// Problem is one fault.
type Problem struct {
	Key    string
	Source Source
	Text   string
}

// String is the line that an operator reads.
func (p Problem) String() string { return fmt.Sprintf("%s (%s): %s", p.Key, p.Source, p.Text) }

// Problems is the error of Load: every fault that was found, one per line.
type Problems []Problem

// Error implements error.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Loaded is the outcome of a successful Load.
type Loaded struct {
	schema   *Schema
	sources  map[string]Source
	warnings Problems
}

// Warnings are what an operator should know although it stops nothing.
func (l *Loaded) Warnings() Problems { return l.warnings }

// Source tells where the value of a key came from.
func (l *Loaded) Source(key string) Source { return l.sources[key] }

// exempt matches the variables that an orchestrator injects for a service called bothy.
var exempt = regexp.MustCompile(`^BOTHY(_[A-Z0-9]+)*_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP)(_(PROTO|PORT|ADDR))?)?)$`)

// EnvConfigFile names the variable that holds the path of the file.
const EnvConfigFile = "BOTHY_CONFIG_FILE"

// Load fills every bound struct. The error, if any, is of type Problems.
func (s *Schema) Load(from Sources) (*Loaded, error) {
	l := &loader{schema: s, loaded: &Loaded{schema: s, sources: map[string]Source{}}}
	for name := range s.keys {
		l.loaded.sources[name] = SourceDefault
	}
	l.file(from.FileName, from.File)
	l.environment(from.Environ)
	for _, name := range sortedKeys(from.Flags) {
		l.apply(name, Source("flag --"+name[strings.LastIndex(name, ".")+1:]), from.Flags[name])
	}
	l.required()
	if len(l.problems) == 0 {
		l.cross()
	}
	if len(l.problems) > 0 {
		slices.SortStableFunc(l.problems, func(a, b Problem) int { return strings.Compare(a.Key, b.Key) })
		return nil, l.problems
	}
	l.warnEnvRefs()
	return l.loaded, nil
}

type loader struct {
	schema   *Schema
	loaded   *Loaded
	problems Problems
	faulty   map[string]bool
}

func (l *loader) problem(key string, source Source, text string) {
	l.problems = append(l.problems, Problem{key, source, text})
	if l.faulty == nil {
		l.faulty = map[string]bool{}
	}
	l.faulty[key] = true
}

func (l *loader) apply(name string, source Source, text string) {
	k, known := l.schema.keys[name]
	if !known {
		l.unknown(name, source)
		return
	}
	delete(l.faulty, name)
	if err := k.set(text); err != nil {
		l.problem(name, source, err.Error())
		return
	}
	l.loaded.sources[name] = source
}

func (l *loader) unknown(name string, source Source) {
	if hint, ok := l.schema.elsewhere[name]; ok {
		l.problem(name, source, "is no key of the configuration; "+hint)
		return
	}
	text := "unknown key"
	if near := l.schema.nearest(name); near != "" {
		text += ", did you mean " + near + "?"
	}
	l.problem(name, source, text)
}

func (l *loader) environment(environ []string) {
	environ = slices.Clone(environ)
	slices.Sort(environ)
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "BOTHY_") || name == EnvConfigFile || strings.HasPrefix(name, "BOTHY_SECRET_") {
			continue
		}
		key, ok := KeyName(name)
		if _, known := l.schema.keys[key]; !known && exempt.MatchString(name) {
			continue
		}
		if !ok {
			l.problem(name, "env", "unknown variable; keys are written as BOTHY_SECTION__NAME")
			continue
		}
		l.apply(key, Source("env "+name), value)
	}
}

func (l *loader) required() {
	for _, name := range l.schema.names() {
		k := l.schema.keys[name]
		if k.Required && l.loaded.sources[name] == SourceDefault && k.Default == "" && !l.faulty[name] {
			l.problem(name, SourceDefault, "is required; set it in the file or as "+EnvName(name))
		}
	}
}

func (l *loader) cross() {
	for _, c := range l.schema.checks {
		err := c.check()
		if err == nil {
			continue
		}
		p := Problem{strings.Join(c.keys, ", "), SourceCheck + Source(" "+c.name+", "+l.sourcesOf(c.keys)), err.Error()}
		if c.warn {
			l.loaded.warnings = append(l.loaded.warnings, p)
			continue
		}
		l.problems = append(l.problems, p)
	}
}

func (l *loader) sourcesOf(keys []string) string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = string(l.loaded.sources[k])
	}
	return strings.Join(slices.Compact(out), ", ")
}

func (l *loader) warnEnvRefs() {
	for _, name := range l.schema.names() {
		k := l.schema.keys[name]
		if k.Type == "ref" && strings.HasPrefix(k.target.String(), "env:") {
			l.loaded.warnings = append(l.loaded.warnings, Problem{name, l.loaded.sources[name],
				"a secret in the environment is visible to every process of the user and never rotates; prefer a file"})
		}
	}
}

// nearest gives the known name within two edits, or nothing.
func (s *Schema) nearest(name string) string {
	best, bestDistance := "", 3
	for _, known := range s.names() {
		if d := distance(name, known, bestDistance); d < bestDistance {
			best, bestDistance = known, d
		}
	}
	return best
}

// distance is the edit distance, or limit when it is at least that.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], limit)
}

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// IsProblems reports whether an error came from a faulty configuration.
func IsProblems(err error) bool {
	var p Problems
	return errors.As(err, &p)
}
