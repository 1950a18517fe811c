// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/OWNER/bothy/services/server/api/contract"
)

// answers maps an operation and a status to the schema of its body, empty for no body.
var answers = sync.OnceValues(readAnswers)

// stream stands for a body that is no JSON; its test reads it.
const stream = "(stream)"

func readAnswers() (map[string]map[int]string, error) {
	_, file, _, _ := runtime.Caller(0)
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(file), "../../../../docs/api/openapi.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read the contract: %w", err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			ID        string `yaml:"operationId"`
			Responses map[string]struct {
				Content map[string]struct {
					Schema struct {
						Ref string `yaml:"$ref"`
					} `yaml:"schema"`
				} `yaml:"content"`
			} `yaml:"responses"`
		} `yaml:"paths"`
	}
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("read the contract: %w", err)
	}
	out := map[string]map[int]string{}
	for _, methods := range doc.Paths {
		for _, op := range methods {
			byStatus := map[int]string{}
			for status, answer := range op.Responses {
				n, err := strconv.Atoi(status)
				if err != nil {
					continue
				}
				byStatus[n] = ""
				for media, content := range answer.Content {
					if media != "application/json" {
						byStatus[n] = stream
						continue
					}
					byStatus[n] = content.Schema.Ref[strings.LastIndex(content.Schema.Ref, "/")+1:]
				}
			}
			out[op.ID] = byStatus
		}
	}
	return out, nil
}

// check holds an answer against the contract: its status, its media type and its body.
func (r *Response) check() error {
	all, err := answers()
	if err != nil {
		return err
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Status >= http.StatusBadRequest {
		if media != "application/problem+json" {
			return fmt.Errorf("a refusal has the media type %q", media)
		}
		if err := contract.Value("Problem", r.Body); err != nil {
			return describe(err)
		}
		if int(r.Int("status")) != r.Status {
			return errors.New("the problem names another status")
		}
		if r.Str("correlation_id") != r.Header.Get("Correlation-Id") {
			return errors.New("the problem names another correlation ID than the header")
		}
		return nil
	}
	schema, known := all[r.Operation][r.Status]
	switch {
	case !known:
		return errors.New("the operation has no such status")
	case schema == "" && len(r.Body) > 0:
		return errors.New("the operation has no body for this status")
	case schema == "":
		return nil
	case schema == stream:
		if media == "application/json" {
			return errors.New("a stream has another media type")
		}
		return nil
	case media != "application/json":
		return fmt.Errorf("the media type is %q", media)
	}
	if err := contract.Value(schema, r.Body); err != nil {
		return describe(err)
	}
	return checkTimes(r.At(""))
}

var (
	someTime  = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d`)
	exactTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
)

// checkTimes finds times that are written in another way than the contract says, which its
// schemas alone do not tell.
func checkTimes(v any) error {
	switch v := v.(type) {
	case string:
		if someTime.MatchString(v) && !exactTime.MatchString(v) {
			return fmt.Errorf("the time %q is not written in milliseconds and UTC", v)
		}
	case []any:
		for _, inner := range v {
			if err := checkTimes(inner); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, inner := range v {
			if err := checkTimes(inner); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}
