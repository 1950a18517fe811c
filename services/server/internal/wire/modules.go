// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"github.com/OWNER/bothy/services/server/internal/platform/config"
)

// moduleConfig has the keys of the modules, one field per module that has any.
type moduleConfig struct{}

func (m *moduleConfig) defaults() {}

func (m *moduleConfig) bind(*config.Schema) {}

func (m *moduleConfig) crossChecks(*config.Schema, *Config) {}

func (m *moduleConfig) derive(*Config) {}
