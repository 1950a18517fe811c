module github.com/OWNER/bothy/services/smoke

go 1.26.0

require github.com/OWNER/bothy/sdk/go v0.0.0

require github.com/coder/websocket v1.8.15 // indirect

replace github.com/OWNER/bothy/sdk/go => ../../sdk/go
