// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Client calls the API as one caller. It repeats nothing by itself.
type Client struct {
	// Address is the origin of the server.
	Address string
	// Token is an API token; empty when device is set.
	Token string
	// ID is the principal.
	ID string

	device *device
	http   *http.Client
}

// Problem is an answer that is no success.
type Problem struct {
	Status        int    `json:"status"`
	Code          string `json:"code"`
	Reason        string `json:"reason"`
	Title         string `json:"title"`
	CorrelationID string `json:"correlation_id"`
	Errors        []any  `json:"errors"`
}

// Error implements error.
func (p *Problem) Error() string {
	return fmt.Sprintf("%d %s %s: %s %v (%s)", p.Status, p.Code, p.Reason, p.Title, p.Errors, p.CorrelationID)
}

// StatusOf is the HTTP status of a refused call, and 0 when the server gave no answer at all.
func StatusOf(err error) int {
	var p *Problem
	if errors.As(err, &p) {
		return p.Status
	}
	return 0
}

// NewHTTPClient keeps enough connections for many callers at once.
func NewHTTPClient(connections int) *http.Client {
	return &http.Client{
		Transport: &http.Transport{MaxIdleConns: connections, MaxIdleConnsPerHost: connections, IdleConnTimeout: time.Minute, DisableCompression: true},
		Timeout:   20 * time.Second,
	}
}

// WithHTTP is the same caller over other connections.
func (c *Client) WithHTTP(h *http.Client) *Client {
	other := *c
	other.http = h
	return &other
}

// Call sends a request and reads the answer into out, which may be nil. A refusal is a *Problem.
func (c *Client) Call(ctx context.Context, method, path string, body, out any, headers ...string) error {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
	}
	const attempts = 2 // the second with the nonce that the first was told
	for attempt := range attempts {
		again, err := c.once(ctx, method, path, raw, out, headers)
		if err != nil && again && attempt+1 < attempts {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		return nil
	}
	return nil
}

func (c *Client) once(ctx context.Context, method, path string, body []byte, out any, headers []string) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.Address+"/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	switch {
	case c.device != nil:
		bare, _, _ := strings.Cut(path, "?") // A proof names no query.
		if err := c.device.sign(req, c.Address+"/api/v1"+bare); err != nil {
			return false, err
		}
	case c.Token != "":
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return false, err
	}
	if c.device != nil {
		c.device.learn(res.Header)
	}
	const firstFailure = 300
	if res.StatusCode >= firstFailure {
		p := &Problem{}
		if err := json.Unmarshal(text, p); err != nil {
			p.Title = string(text)
		}
		p.Status = res.StatusCode
		return p.Code == "use_dpop_nonce", p
	}
	if out == nil {
		return false, nil
	}
	return false, json.Unmarshal(text, out)
}

// Written is what matters of an answered message.
type Written struct {
	ID          string `json:"id"`
	ThreadSeq   int64  `json:"thread_seq"`
	ClientMsgID string `json:"client_msg_id"`
	Content     string `json:"content"`
}

// Send writes a message once.
func (c *Client) Send(ctx context.Context, threadID, clientID, content string) (Written, error) {
	var w Written
	err := c.Call(ctx, http.MethodPost, "/threads/"+threadID+"/messages", map[string]any{"client_msg_id": clientID, "content": content}, &w)
	return w, err
}

// Messages reads a whole thread, oldest first.
func (c *Client) Messages(ctx context.Context, threadID string) ([]Written, error) {
	var all []Written
	for after := int64(0); ; {
		var page struct {
			Items []Written `json:"items"`
		}
		if err := c.Call(ctx, http.MethodGet, fmt.Sprintf("/threads/%s/messages?after=%d&limit=200", threadID, after), nil, &page); err != nil {
			return nil, err
		}
		if len(page.Items) == 0 {
			return all, nil
		}
		all = append(all, page.Items...)
		after = all[len(all)-1].ThreadSeq
	}
}
