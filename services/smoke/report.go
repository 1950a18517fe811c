// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"fmt"
	"os"
	"time"
)

// report is what build machines read: one test case per step, in the form of JUnit.
type report struct {
	XMLName  xml.Name   `xml:"testsuite"`
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Cases    []testCase `xml:"testcase"`
}

type testCase struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Seconds string   `xml:"time,attr"`
	Failure *failure `xml:"failure,omitempty"`
}

type failure struct {
	Message string `xml:"message,attr"`
}

func (r *report) add(step string, took time.Duration, err error) {
	c := testCase{Name: step, Class: "smoke", Seconds: fmt.Sprintf("%.3f", took.Seconds())}
	r.Tests++
	if err != nil {
		r.Failures++
		c.Failure = &failure{Message: err.Error()}
	}
	r.Cases = append(r.Cases, c)
}

func (r *report) write(name string) error {
	const file = 0o644
	r.Name = "smoke"
	text, err := xml.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append([]byte(xml.Header), text...), file)
}
