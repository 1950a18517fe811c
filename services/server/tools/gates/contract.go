// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"gopkg.in/yaml.v3"
)

// readActions reads the catalogue: action -> module.
func readActions(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var catalogue []struct {
		ID     string `yaml:"id"`
		Module string `yaml:"module"`
	}
	if err := yaml.Unmarshal(data, &catalogue); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	actions := map[string]string{}
	for i, a := range catalogue {
		if a.ID == "" {
			return nil, fmt.Errorf("%s: entry %d has no id", path, i+1)
		}
		if _, twice := actions[a.ID]; twice {
			return nil, fmt.Errorf("%s: the action %s stands there twice", path, a.ID)
		}
		actions[a.ID] = a.Module
	}
	return actions, nil
}

// readAsyncAPI reads the event contract: event key -> module, and the ops a client may send.
func readAsyncAPI(path string) (events map[string]string, ops map[string]bool, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	var doc asyncAPI
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(doc.Events) == 0 {
		return nil, nil, fmt.Errorf("%s: no event types under x-events", path)
	}
	events, ops = map[string]string{}, map[string]bool{}
	for name, e := range doc.Events {
		events[eventKey(name, e.Kind)] = e.Module
	}
	for _, o := range doc.Operations {
		if o.Action != "receive" {
			continue
		}
		for _, m := range o.Messages {
			key := m.Ref[strings.LastIndex(m.Ref, "/")+1:]
			message, known := doc.Components.Messages[key]
			if !known || message.Name == "" {
				return nil, nil, fmt.Errorf("%s: the client frame %s has no name under components.messages", path, key)
			}
			ops[message.Name] = true
		}
	}
	return events, ops, nil
}

// asyncAPI is the part of the document that names event types and frames.
type asyncAPI struct {
	Operations map[string]struct {
		Action   string `yaml:"action"`
		Messages []struct {
			Ref string `yaml:"$ref"`
		} `yaml:"messages"`
	} `yaml:"operations"`
	Components struct {
		Messages map[string]struct {
			Name string `yaml:"name"`
		} `yaml:"messages"`
	} `yaml:"components"`
	Events map[string]struct {
		Module string `yaml:"module"`
		Kind   string `yaml:"kind"`
	} `yaml:"x-events"`
}

// eventKey makes the comparison hold the kind of an event too: a durable one that the register calls ephemeral is
// another event.
func eventKey(name, kind string) string { return kind + " " + name }
