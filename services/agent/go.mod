module github.com/OWNER/bothy/services/agent

go 1.26.0

require (
	github.com/OWNER/bothy/sdk/go v0.0.0
	gopkg.in/yaml.v3 v3.0.1
)

require github.com/coder/websocket v1.8.15 // indirect

replace github.com/OWNER/bothy/sdk/go => ../../sdk/go
