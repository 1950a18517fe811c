// SPDX-License-Identifier: Apache-2.0

package pg_test

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

func TestAddressesSayWhatWasConfigured(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*pg.Config)
		tls    bool
	}{
		"socket":    {change: func(c *pg.Config) { c.Host = "/run/a b" }},
		"localhost": {change: func(*pg.Config) {}},
		"loopback":  {change: func(c *pg.Config) { c.Host = "127.0.0.1" }},
		"other":     {change: func(c *pg.Config) { c.Host = "db.example.org" }, tls: true},
		"disabled":  {change: func(c *pg.Config) { c.Host, c.SSLMode = "db.example.org", "disable" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := pg.Default()
			cfg.Password = "p@ss/w:rd ?"
			c.change(&cfg)
			parsed, err := pgx.ParseConfig(cfg.ConnString())
			if err != nil {
				t.Fatal(err)
			}
			if parsed.Host != cfg.Host || parsed.Password != cfg.Password || parsed.User != "bothy_app" || parsed.Database != "bothy" {
				t.Errorf("parsed %s %s %s", parsed.Host, parsed.User, parsed.Database)
			}
			if (parsed.TLSConfig != nil) != c.tls {
				t.Errorf("TLS %v, want %v", parsed.TLSConfig != nil, c.tls)
			}
		})
	}
}

func TestConfigNamesTheKeyAtFault(t *testing.T) {
	t.Parallel()
	if err := pg.Default().Validate(); err != nil {
		t.Fatal(err)
	}
	for key, change := range map[string]func(*pg.Config){
		"database.max_conns":       func(c *pg.Config) { c.MaxConns = 3 },
		"database.commit_mode":     func(c *pg.Config) { c.CommitMode = "never" },
		"database.mode":            func(c *pg.Config) { c.Mode = "" },
		"database.tx_retry_max":    func(c *pg.Config) { c.TxRetryMax = 11 },
		"database.flush_timeout":   func(c *pg.Config) { c.FlushTimeout = time.Hour },
		"database.acquire_timeout": func(c *pg.Config) { c.AcquireTimeout = 0 },
	} {
		cfg := pg.Default()
		change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), key+":") {
			t.Errorf("%s gave %v", key, err)
		}
	}
}

func TestTagsAndDefaultsAgree(t *testing.T) {
	t.Parallel()
	for _, defaults := range []any{pg.Default(), pg.DefaultEmbedded()} {
		v := reflect.ValueOf(defaults)
		for i := range v.NumField() {
			tag := v.Type().Field(i).Tag
			if key := tag.Get("key"); key != "" {
				if tag.Get("doc") == "" {
					t.Errorf("%s is not described", key)
				}
				if want, got := tag.Get("default"), text(v.Field(i).Interface()); want != got {
					t.Errorf("%s: the tag says %q, the function %q", key, want, got)
				}
			}
		}
	}
}

// text is a default in the form of a tag; empty for what has none.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case time.Duration:
		for _, form := range []string{v.String(), strings.TrimSuffix(v.String(), "0s"), strconv.Itoa(int(v.Seconds())) + "s"} {
			if parsed, err := time.ParseDuration(form); err == nil && parsed == v && (form == "60s" || !strings.HasSuffix(form, "m0s") && form != "1m") {
				return form
			}
		}
	}
	return ""
}
